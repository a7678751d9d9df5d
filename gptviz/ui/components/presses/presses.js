// Counts presses. What is told goes along with the press itself: both leave the browser together.

const counts = {}; // key of a button -> its presses since the page was loaded

export default function ({ data, setStateValue }) {
  const keys = JSON.parse(new TextDecoder().decode(data));
  const hear = ({ target }) => {
    const button = target.closest?.("button");
    const key = button && keys.find((key) => button.closest(`.st-key-${key}`));
    if (!key) return;
    counts[key] = (counts[key] ?? 0) + 1;
    setStateValue("counts", { ...counts });
  };
  document.addEventListener("click", hear, { capture: true });
  return () => document.removeEventListener("click", hear, { capture: true });
}
