// Counts presses, in their order. What is told goes along with the press itself: both leave the browser together.

const log = []; // the last of them: [its number since the page was loaded, the button's key]
let count = 0;

export default function ({ data, setStateValue }) {
  const { keys, most } = JSON.parse(new TextDecoder().decode(data));
  const hear = ({ target }) => {
    const button = target.closest?.("button");
    const key = button && keys.find((key) => button.closest(`.st-key-${key}`));
    if (!key) return;
    log.push([++count, key]);
    log.splice(0, log.length - most);
    setStateValue("log", [...log]);
  };
  document.addEventListener("click", hear, { capture: true });
  return () => document.removeEventListener("click", hear, { capture: true });
}
