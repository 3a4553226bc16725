// Follows new content only for a reader who hasn't scrolled away; others get a button.

const NEAR = 48;

/**
 * `change(mutate, target)` runs `mutate` and then brings `target` (what is new, or null) into view. An
 * answer taller than the window is shown from its start: following to its end would hide the conclusion.
 */
export function createFollower(container, button) {
  let ours = 0; // where we scrolled to last; a reader who is still there has not scrolled away

  const room = () => container.scrollHeight - container.clientHeight - container.scrollTop;
  const following = () => room() < NEAR || Math.abs(container.scrollTop - ours) < 2;

  function reveal(target) {
    const bottom = container.scrollHeight - container.clientHeight;
    const top = target
      ? target.getBoundingClientRect().top - container.getBoundingClientRect().top + container.scrollTop - 12
      : bottom;
    container.scrollTop = Math.max(0, Math.min(bottom, top));
    ours = container.scrollTop;
    button.hidden = true;
  }

  function change(mutate, target = () => null) {
    const follow = following();
    const heightBefore = container.scrollHeight;
    mutate();
    const node = target();
    if (!node) return;
    if (follow) reveal(node);
    else if (container.scrollHeight !== heightBefore) button.hidden = false;
  }

  /** Runs `mutate`, which adds content above: what is being read stays where it is. */
  function keepPlace(mutate) {
    const below = container.scrollHeight - container.scrollTop;
    const unmoved = Math.abs(container.scrollTop - ours) < 2;
    mutate();
    container.scrollTop = container.scrollHeight - below;
    if (unmoved) ours = container.scrollTop;
  }

  container.addEventListener('scroll', () => {
    if (room() < NEAR) button.hidden = true;
  });
  // A growing question box, or a keyboard on a phone, takes room away at the bottom.
  let height = container.clientHeight;
  new ResizeObserver(() => {
    const wasAtEnd = room() + container.clientHeight - height < NEAR;
    height = container.clientHeight;
    if (wasAtEnd) container.scrollTop = container.scrollHeight;
  }).observe(container);

  return { change, reveal, keepPlace };
}
