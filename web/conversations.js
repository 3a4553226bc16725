// All the page knows of conversations and their turns, whatever is shown. No network, no document.

import { isId } from './frames.js';

export const ENDED = new Set(['done', 'failed', 'cancelled', 'refused']);

/** How a stored run's status reads as the state of a turn. */
const STATE_OF_STATUS = { RUNNING: 'running', SUCCESS: 'done', FAILED: 'failed', CANCELLED: 'cancelled' };

/**
 * Emits `turn` { turn, added, ended }, `conversation` { conversation }, `sessions` and `shown`.
 *
 * A turn is `waiting` (not acknowledged), `running`, or one of ENDED. The first end wins over later
 * frames; only the store's own word, in history, replaces it.
 */
export class Conversations {
  constructor({ now }) {
    this.now = now;
    this.all = new Set();
    this.bySession = new Map();
    this.byRun = new Map();
    this.byRequest = new Map();
    this.listeners = [];
    this.shown = this.create(null);
  }

  listen(listener) {
    this.listeners.push(listener);
  }

  emit(type, detail = {}) {
    for (const listener of this.listeners) listener({ type, ...detail });
  }

  create(sessionId) {
    const conversation = {
      sessionId,
      title: '',
      messagePairs: 0,
      lastActiveAt: 0,
      turns: [],
      before: null,
      loaded: false,
      missing: false,
      unread: false,
    };
    this.all.add(conversation);
    if (sessionId) this.bySession.set(sessionId, conversation);
    return conversation;
  }

  ofSession(sessionId) {
    return this.bySession.get(sessionId) ?? this.create(sessionId);
  }

  show(conversation) {
    const left = this.shown;
    this.shown = conversation;
    conversation.unread = false;
    if (left !== conversation && !left.sessionId && !left.turns.length) this.all.delete(left);
    this.emit('shown');
    this.emit('sessions');
  }

  showSession(sessionId) {
    this.show(this.ofSession(sessionId));
  }

  showNew() {
    if (this.shown.sessionId || this.shown.turns.length) this.show(this.create(null));
    else this.emit('shown');
  }

  active(conversation) {
    return conversation.turns.find((turn) => !ENDED.has(turn.state)) ?? null;
  }

  unfinished() {
    return [...this.all].flatMap((conversation) => conversation.turns.filter((turn) => !ENDED.has(turn.state)));
  }

  /** A turn of this page's own, made before the service knows of it. */
  ask(conversation, { requestId, query, runId = null, askedAt = this.now() }) {
    const turn = this.addTurn(conversation, { requestId, runId, query, state: runId ? 'running' : 'waiting' });
    turn.own = true;
    turn.startedAt = askedAt;
    conversation.lastActiveAt = Math.max(conversation.lastActiveAt, askedAt);
    this.emit('turn', { turn, added: true });
    this.emit('sessions');
    return turn;
  }

  addTurn(conversation, { requestId, runId, query, state }) {
    const turn = {
      conversation,
      requestId,
      runId,
      query,
      queryTruncated: false,
      state,
      steps: [],
      intent: null,
      outcome: null,
      content: null,
      failure: null,
      createdAt: null,
      finishedAt: null,
      startedAt: this.now(),
      endedAt: null,
      own: false,
      sent: false,
      slow: false,
      cancel: null,
      seen: new Set(),
      lastSeq: 0,
    };
    conversation.turns.push(turn);
    if (requestId && !this.byRequest.has(requestId)) this.byRequest.set(requestId, turn);
    if (runId) this.byRun.set(runId, turn);
    return turn;
  }

  forget(turn) {
    const { conversation } = turn;
    conversation.turns = conversation.turns.filter((other) => other !== turn);
    if (this.byRequest.get(turn.requestId) === turn) this.byRequest.delete(turn.requestId);
    this.emit('conversation', { conversation });
  }

  /** Applies a frame of a run; `{ turn, fresh, gap }`. A seq seen before changes nothing. */
  applyFrame(frame) {
    const { turn, added } = this.turnOf(frame);
    // Replayed frames repeat a stored run and count on their own; what they say is idempotent.
    const counted = frame.replayed !== true && Number.isInteger(frame.seq);
    if (counted && turn.seen.has(frame.seq)) return { turn, fresh: false, gap: false };
    const gap = counted && frame.seq > turn.lastSeq + 1;
    if (counted) {
      turn.seen.add(frame.seq);
      turn.lastSeq = Math.max(turn.lastSeq, frame.seq);
    }
    // A refusal says that there is no run; here is one, of another try with the same id.
    const wasEnded = ENDED.has(turn.state) && turn.state !== 'refused';
    this.applyToTurn(turn, frame, wasEnded);
    this.changed(turn, { added, ended: !wasEnded && ENDED.has(turn.state) });
    return { turn, fresh: true, gap };
  }

  applyToTurn(turn, frame, wasEnded) {
    if (frame.type === 'content') {
      turn.content ??= frame.content ?? null;
      return;
    }
    if (wasEnded) return;
    Object.assign(turn, { state: 'running', failure: null, endedAt: null });
    if (frame.type === 'status') this.addStep(turn, frame);
    else if (frame.type === 'done') this.end(turn, 'done', { outcome: frame.outcome });
    else if (frame.type === 'cancelled') this.end(turn, 'cancelled');
    else if (frame.type === 'error') this.end(turn, 'failed', { failure: failureOf(frame) });
  }

  addStep(turn, frame) {
    const { code, intent, tool, status, seq } = frame;
    if (intent) turn.intent = intent;
    turn.steps.push({ code, intent, tool, status, seq, at: this.now() - turn.startedAt });
    turn.steps.sort((one, other) => one.seq - other.seq);
  }

  end(turn, state, detail = {}) {
    Object.assign(turn, detail, { state, endedAt: turn.endedAt ?? this.now() });
  }

  /** Ends a turn for a reason this page found: a refusal, or a question taken back. */
  close(turn, state, failure = null) {
    if (ENDED.has(turn.state)) return;
    this.end(turn, state, { failure });
    this.changed(turn, { ended: true });
  }

  reopen(turn) {
    Object.assign(turn, { state: 'waiting', failure: null, endedAt: null, sent: false, slow: false, cancel: null });
    turn.startedAt = this.now();
    this.changed(turn);
  }

  turnOf(frame) {
    const known = this.byRun.get(frame.runId);
    if (known) return { turn: known, added: false };
    const asked = this.byRequest.get(frame.requestId);
    const fits = asked && !asked.runId && [null, frame.sessionId].includes(asked.conversation.sessionId);
    if (fits) {
      this.acknowledge(asked, frame.sessionId, frame.runId);
      return { turn: asked, added: false };
    }
    const conversation = this.ofSession(frame.sessionId);
    const { requestId = null, runId } = frame;
    const turn = this.addTurn(conversation, { requestId, runId, query: '', state: 'running' });
    return { turn, added: true };
  }

  acknowledge(turn, sessionId, runId) {
    turn.runId = runId;
    turn.sent = true;
    this.byRun.set(runId, turn);
    if (!turn.conversation.sessionId) this.bind(turn.conversation, sessionId);
  }

  /** A new conversation learns its id; what was known under that id already becomes part of it. */
  bind(conversation, sessionId) {
    const known = this.bySession.get(sessionId);
    conversation.sessionId = sessionId;
    this.bySession.set(sessionId, conversation);
    if (known) {
      this.all.delete(known);
      for (const turn of known.turns) turn.conversation = conversation;
      conversation.turns = [...known.turns, ...conversation.turns];
      conversation.title ||= known.title;
      conversation.before = known.before;
      if (this.shown === known) this.shown = conversation;
    }
    if (this.shown === conversation) this.emit('shown', { bound: true });
    this.emit('sessions');
  }

  mergeSessions(entries) {
    for (const entry of Array.isArray(entries) ? entries : []) {
      if (!isId(entry?.sessionId)) continue;
      const conversation = this.ofSession(entry.sessionId);
      if (typeof entry.title === 'string') conversation.title = entry.title;
      if (Number.isInteger(entry.messagePairs)) conversation.messagePairs = entry.messagePairs;
      conversation.lastActiveAt = Math.max(conversation.lastActiveAt, Date.parse(entry.lastActiveAt) || 0);
    }
    this.emit('sessions');
  }

  /** A stored turn: the truth, except that RUNNING may be older than an end we have seen. */
  mergeTurn(sessionId, stored) {
    if (!isId(stored?.runId)) return null;
    const { turn, added } = this.turnOf({ ...stored, sessionId });
    const before = fingerprint(turn);
    const wasEnded = ENDED.has(turn.state);
    this.applyStored(turn, stored);
    turn.conversation.turns.sort(byCreation);
    if (added || before !== fingerprint(turn)) {
      this.changed(turn, { added, ended: !wasEnded && ENDED.has(turn.state), stored: true });
    }
    return turn;
  }

  applyStored(turn, stored) {
    const query = typeof stored.query === 'string' ? stored.query : '';
    if (!turn.query || turn.queryTruncated) {
      turn.query = query;
      turn.queryTruncated = stored.queryTruncated === true;
    }
    turn.createdAt = Date.parse(stored.createdAt) || turn.createdAt;
    turn.finishedAt = Date.parse(stored.finishedAt) || turn.finishedAt;
    turn.intent = stored.intent ?? turn.intent;
    if (!turn.own && turn.createdAt) turn.startedAt = turn.createdAt;
    const state = STATE_OF_STATUS[stored.status];
    if (!state || (state === 'running' && ENDED.has(turn.state) && turn.state !== 'refused')) return;
    turn.state = state;
    turn.failure = state === 'failed' ? (turn.failure ?? { code: stored.failureCode ?? '', message: '' }) : null;
    if (state === 'running') return;
    turn.outcome = stored.outcome ?? turn.outcome;
    turn.content = turn.content ?? stored.content ?? null;
    turn.endedAt ??= turn.finishedAt ?? this.now();
  }

  changed(turn, detail = {}) {
    const { conversation } = turn;
    if (conversation !== this.shown && detail.ended && !detail.stored) {
      conversation.unread = true;
    }
    this.emit('turn', { turn, added: false, ended: false, ...detail });
    if (detail.ended || detail.added) this.emit('sessions');
  }
}

function failureOf(frame) {
  return { code: String(frame.code ?? ''), message: typeof frame.message === 'string' ? frame.message : '' };
}

function byCreation(one, other) {
  const left = one.createdAt ?? Infinity;
  const right = other.createdAt ?? Infinity;
  return left === right ? 0 : left - right;
}

function fingerprint({ runId, state, query, content, failure, intent, outcome }) {
  return JSON.stringify([runId, state, query, content, failure, intent, outcome]);
}
