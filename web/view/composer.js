// Where questions are written. Text leaves the box only when it is on its way.

import { fit, MAX_BYTES, MAX_CHARACTERS } from '../limits.js';
import { h } from './element.js';

const REFUSALS = {
  busy: 'A question is being answered in this conversation. Wait for it or cancel it; your text is kept.',
  tooLong: 'This is too long: at most 8,000 characters and 24 KB. Nothing was sent.',
};

export function createComposer({ form, conversations, client, storage, notices, onSent }) {
  const box = form.querySelector('textarea');
  const counter = form.querySelector('#counter');
  const send = form.querySelector('#send');
  const cancel = form.querySelector('#cancel');
  let showing = conversations.shown;
  let showingId = showing.sessionId;

  function submit() {
    const { shown } = conversations;
    const typed = box.value;
    const reason = client.ask(shown, typed);
    if (reason === 'blank') return;
    if (reason) {
      notices.show('refusal', REFUSALS[reason], reason);
      return;
    }
    notices.clear('refusal');
    set('');
    onSent();
  }

  function set(value) {
    box.value = value;
    storage.keepDraft(conversations.shown.sessionId, value);
    measure();
  }

  function measure() {
    const { characters, bytes, near, over } = fit(box.value);
    counter.hidden = !near;
    counter.classList.toggle('over', over);
    box.setAttribute('aria-invalid', String(over));
    if (near) counter.replaceChildren(counterText(characters, bytes, over));
    box.style.height = 'auto';
    box.style.height = `${Math.min(box.scrollHeight + 2, window.innerHeight * 0.4)}px`;
  }

  function refresh() {
    const active = conversations.active(conversations.shown);
    cancel.hidden = active === null;
    cancel.disabled = Boolean(active?.cancel && !active.cancel.stale);
    send.setAttribute('aria-disabled', String(active !== null));
  }

  function cancelActive() {
    const active = conversations.active(conversations.shown);
    if (active && !(active.cancel && !active.cancel.stale)) client.cancel(active);
  }

  function onShown() {
    const { shown } = conversations;
    if (shown === showing && showingId === shown.sessionId) return;
    if (shown === showing) {
      // The conversation got its id while its next question was being written.
      storage.keepDraft(showingId, '');
      storage.keepDraft(shown.sessionId, box.value);
    } else {
      set(storage.draft(shown.sessionId));
      notices.clear('refusal');
    }
    showing = shown;
    showingId = shown.sessionId;
    refresh();
  }

  box.addEventListener('keydown', (event) => {
    // While an input method composes, Enter and Escape belong to it; some browsers only say 229.
    if (event.isComposing || event.keyCode === 229) return;
    if (event.key === 'Enter' && !event.shiftKey && !event.altKey) {
      event.preventDefault();
      if (!event.repeat) submit();
    }
  });
  box.addEventListener('input', () => {
    storage.keepDraft(conversations.shown.sessionId, box.value);
    measure();
  });
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    submit();
    box.focus();
  });
  cancel.addEventListener('click', () => {
    cancelActive();
    box.focus();
  });
  window.addEventListener('resize', measure);
  conversations.listen(({ type }) => {
    if (type === 'shown') onShown();
    if (type === 'turn' || type === 'conversation') refresh();
  });

  set(storage.draft(showing.sessionId));
  refresh();
  return {
    cancelActive,
    focus: () => box.focus(),
    /** Puts `value` into the box, after what is there already. */
    add(value) {
      set(box.value.trim() ? `${box.value}\n\n${value}` : value);
      box.focus();
      box.setSelectionRange(box.value.length, box.value.length);
    },
  };
}

function counterText(characters, bytes, over) {
  const kilobytes = (bytes / 1024).toFixed(1);
  const counts = `${characters.toLocaleString('en')} of ${MAX_CHARACTERS.toLocaleString('en')} characters, ${kilobytes} of ${MAX_BYTES / 1024} KB`;
  return h('span', {}, over ? `Too long: ${counts}` : counts);
}
