// Answers a picked tile with the values that were sent ahead for it.

export default function ({ data }) {
  const { tiles, plot, entries } = JSON.parse(new TextDecoder().decode(data));
  const answer = ({ detail }) => {
    const entry = detail.tiles === tiles && entries[detail.id];
    if (entry) document.dispatchEvent(new CustomEvent("gptviz-values", { detail: { plot, ...entry } }));
  };
  document.addEventListener("gptviz-pick", answer);
  return () => document.removeEventListener("gptviz-pick", answer);
}
