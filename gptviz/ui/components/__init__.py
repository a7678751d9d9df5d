"""What must follow the hand: pictures drawn in the browser, which keep their state across reruns."""
