// One question with its progress and its answer. What is on screen is only replaced when it changed, so
// that opened evidence, focus and selection survive an update.

import { ENDED } from '../conversations.js';
import { DEMO_LABEL, elapsedText, errorText, exactSeconds, stepText } from '../words.js';
import { answerView } from './answer.js';
import { h } from './element.js';

/** `demo.on`: whether answers are the scripted model's. `actions`: `askAgain`, `edit`, `askInNew`, `sendAgain`, each called with the turn. */
export function createTurnView(turn, { actions, demo, now }) {
  const question = h('p', { class: 'prose', dir: 'auto' });
  const cut = h('p', { class: 'quiet', hidden: true }, 'The rest of this long question is not shown.');
  const parts = { progress: h('div', { class: 'progress' }), answer: h('div', {}), outcome: h('div', {}) };
  const node = h(
    'article',
    { class: 'turn', 'data-request': turn.requestId },
    h('div', { class: 'question' }, h('h3', { class: 'visually-hidden' }, 'Question'), question, cut),
    parts.progress,
    parts.answer,
    parts.outcome,
  );
  const drawn = new Map();

  function redraw(part, key, render) {
    const signature = JSON.stringify(key);
    if (drawn.get(part) === signature) return;
    drawn.set(part, signature);
    const hadFocus = parts[part].contains(document.activeElement);
    parts[part].replaceChildren(...[render()].flat(Infinity).filter(Boolean));
    if (hadFocus) (parts[part].querySelector('button, summary') ?? document.getElementById('question')).focus();
  }

  function update() {
    node.dataset.state = turn.state;
    if (turn.runId) node.dataset.run = turn.runId;
    const shownQuery = turn.query || '…';
    if (question.textContent !== shownQuery) question.textContent = shownQuery;
    cut.hidden = !turn.queryTruncated;
    const { state, steps, sent, slow, cancel } = turn;
    redraw('progress', [state, steps.length, sent, slow, cancel], () => progress(turn, actions));
    redraw('answer', turn.content, () => (turn.content ? answer(turn.content, demo.on) : []));
    redraw('outcome', [state, turn.failure, !turn.content], () => outcome(turn, actions));
    tick();
  }

  function tick() {
    const clock = parts.progress.querySelector('.elapsed');
    const words = elapsedText(now() - turn.startedAt);
    if (clock && clock.textContent !== words) clock.textContent = words;
  }

  update();
  return { node, turn, update, tick };
}

function progress(turn, actions) {
  if (turn.state === 'refused') return [];
  if (ENDED.has(turn.state)) return turn.steps.length ? pastSteps(turn) : [];
  return [
    h(
      'div',
      { class: 'now' },
      h('span', { class: 'spinner', 'aria-hidden': 'true' }),
      h('span', { class: 'current' }, currentText(turn)),
      h('span', { class: 'elapsed quiet' }),
      turn.slow ? h('button', { type: 'button', onclick: () => actions.sendAgain(turn) }, 'Send again') : null,
    ),
    turn.steps.length > 1 ? stepList(turn.steps.slice(0, -1)) : null,
  ];
}

export function currentText(turn) {
  if (turn.cancel) return turn.cancel.stale ? 'Cancelling takes long; cancel again or wait' : 'Cancelling';
  if (turn.state === 'waiting' && !turn.sent) return 'Waiting for the connection; the question is kept';
  if (turn.slow) return 'The service hasn’t taken the question yet';
  if (turn.state === 'waiting') return 'Sending';
  return turn.steps.length ? stepText(turn.steps.at(-1)) : 'Running';
}

function stepList(steps) {
  return h(
    'ol',
    { class: 'steps' },
    steps.map((step) => h('li', { 'data-code': step.code }, stepText(step), h('span', { class: 'quiet' }, exactSeconds(step.at)))),
  );
}

function pastSteps(turn) {
  const took = turn.endedAt === null ? '' : `, ${exactSeconds(duration(turn))}`;
  const number = turn.steps.length;
  return h('details', { class: 'past' }, h('summary', {}, `${number} ${number === 1 ? 'step' : 'steps'}${took}`), stepList(turn.steps));
}

/** By one clock: the service's where both its times are known, else this page's. */
function duration({ createdAt, finishedAt, startedAt, endedAt }) {
  return createdAt && finishedAt ? finishedAt - createdAt : endedAt - startedAt;
}

function answer(content, demo) {
  const { kind, label, body } = answerView(content);
  return h(
    'section',
    { class: 'answer', 'data-kind': kind, 'aria-label': label },
    h('div', { class: 'answer-head' }, h('h3', { class: 'badge' }, label), demo ? h('span', { class: 'demo' }, DEMO_LABEL) : null),
    body,
  );
}

function outcome(turn, actions) {
  const { state, failure, content } = turn;
  const again = [
    h('button', { type: 'button', onclick: () => actions.askAgain(turn) }, 'Ask again'),
    h('button', { type: 'button', onclick: () => actions.edit(turn) }, 'Edit'),
  ];
  if (state === 'refused' || state === 'failed') {
    const title = state === 'refused' ? 'Not taken' : 'No answer';
    const elsewhere = ['SESSION_NOT_FOUND', 'INVALID_SESSION_ID'].includes(failure?.code)
      ? h('button', { type: 'button', onclick: () => actions.askInNew(turn) }, 'Ask in a new conversation')
      : null;
    return ended('failure', title, errorText(failure ?? {}), failure?.code, elsewhere ? [elsewhere, again[1]] : again);
  }
  if (state === 'cancelled') return ended('cancelled', 'Cancelled', 'There is no answer to this question.', '', again);
  if (state === 'done' && !content) {
    return ended('failure', 'Answer not readable', 'The stored answer can’t be read. Ask again.', '', again);
  }
  return [];
}

function ended(className, title, words, code, buttons) {
  return h(
    'section',
    { class: `outcome ${className}`, 'data-code': code || null },
    h('p', {}, h('strong', {}, title), ' — ', h('span', { dir: 'auto' }, words)),
    code ? h('p', { class: 'quiet' }, code) : null,
    h('div', { class: 'buttons' }, buttons),
  );
}
