// Answers a scrubber's place with the charts that were sent ahead for it.

export default function ({ data }) {
  const { scrubber, places } = JSON.parse(new TextDecoder().decode(data));
  const answer = (event) => {
    const place = event.detail.scrubber === scrubber && places[event.detail.at];
    if (!place) return;
    event.preventDefault(); // it is shown: Python may take its time
    for (const [plot, text] of Object.entries(place)) {
      document.dispatchEvent(new CustomEvent("gptviz-frame", { detail: { plot, text } }));
    }
  };
  document.addEventListener("gptviz-place", answer);
  return () => document.removeEventListener("gptviz-place", answer);
}
