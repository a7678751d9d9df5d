const REST = 30; // ms between a painted step and the next, for clicks to come through
const sent = new WeakMap(); // the component's root -> the last count that was answered

export default function ({ data, parentElement, setTriggerValue }) {
  if (sent.get(parentElement) === data) return;
  let timer;
  const frame = requestAnimationFrame(() => {
    timer = setTimeout(() => {
      sent.set(parentElement, data);
      setTriggerValue("tick", data);
    }, REST);
  });
  return () => {
    cancelAnimationFrame(frame);
    clearTimeout(timer);
  };
}
