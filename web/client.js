// Speaks the wire contract: sends questions until they are acknowledged, follows their runs, and asks
// history whenever frames may have been missed.

import { ENDED } from './conversations.js';
import { isId, readFrame } from './frames.js';
import { fit, wellFormed } from './limits.js';

export const PATIENCE = Object.freeze({
  // API Gateway closes a connection after ten idle minutes.
  keepAlive: 5 * 60_000,
  acknowledgement: 15_000,
  cancel: 8_000,
  // A silent run that this connection has heard of, and one that it has not.
  liveRun: 30_000,
  lostRun: 2_000,
  longestLookup: 30_000,
  history: 25_000,
});
const PAGE = 20;
const SESSIONS = 50;
/** Lookups of a run that history doesn't have before it is given up. */
const FRUITLESS_LOOKUPS = 4;

export class Client {
  /** `notify(kind, detail)` shows what belongs to no turn. */
  constructor({ connection, conversations, storage, now, newId, notify }) {
    Object.assign(this, { connection, conversations, storage, now, newId, notify });
    this.wanted = [];
    this.pending = null;
    this.lastHeard = 0;
    this.epoch = 0;
    conversations.listen((event) => this.onChange(event));
  }

  start() {
    setInterval(() => this.tick(), 1_000);
    setInterval(() => this.keepAlive(), PATIENCE.keepAlive);
    this.connection.connect();
  }

  // --- what the user does

  /** `null` when the question is on its way; otherwise why not: blank, tooLong or busy. */
  ask(conversation, text) {
    const query = wellFormed(text);
    if (!query.trim()) return 'blank';
    if (fit(query).over) return 'tooLong';
    if (this.conversations.active(conversation)) return 'busy';
    this.dispatch(this.conversations.ask(conversation, { requestId: this.newId(), query }));
    return null;
  }

  /** Sends a question that didn't get an answer once more; reasons as `ask`. */
  askAgain(turn) {
    if (this.conversations.active(turn.conversation)) return 'busy';
    const idIsSpent = turn.runId !== null || turn.failure?.code === 'REQUEST_CONFLICT' || turn.state !== 'refused';
    if (idIsSpent) {
      const refused = turn.state === 'refused';
      const reason = this.ask(turn.conversation, turn.query);
      if (reason === null && refused) this.conversations.forget(turn);
      return reason;
    }
    this.conversations.reopen(turn);
    this.dispatch(turn);
    return null;
  }

  cancel(turn) {
    if (ENDED.has(turn.state)) return;
    turn.cancel = { at: this.now(), sent: false, stale: false };
    if (turn.runId) this.sendCancel(turn);
    else if (!turn.sent) return this.conversations.close(turn, 'cancelled');
    this.conversations.changed(turn);
  }

  dispatch(turn) {
    const { requestId, query, conversation } = turn;
    const message = { action: 'chat', requestId, query };
    if (conversation.sessionId) message.sessionId = conversation.sessionId;
    turn.sentAt = this.now();
    turn.slow = false;
    if (this.connection.send(message)) turn.sent = true;
    else if (this.connection.state.name === 'stopped') this.connection.retry();
    this.conversations.changed(turn);
  }

  sendCancel(turn) {
    turn.cancel.sent = this.connection.send({ action: 'cancel', runId: turn.runId });
  }

  // --- what the connection does

  onOpen() {
    this.epoch += 1;
    this.lastHeard = this.now();
    this.wanted = [];
    this.pending = null;
    for (const turn of this.conversations.unfinished()) this.resume(turn);
    this.wantSessions();
    this.wantTurns(this.conversations.shown);
    for (const turn of this.conversations.unfinished()) this.wantTurns(turn.conversation);
  }

  resume(turn) {
    if (turn.runId) {
      turn.lookups = 0;
      turn.lookedAt = this.now();
      if (turn.cancel) this.sendCancel(turn);
    } else if (turn.cancel) {
      // Sent, never acknowledged, and the connection it ran on is gone: the service cancels such a run.
      this.conversations.close(turn, 'cancelled');
    } else {
      this.dispatch(turn);
    }
  }

  onData(data) {
    this.lastHeard = this.now();
    const { kind, frame } = readFrame(data);
    const rejected = kind === 'refusal' && frame.code === 'UNAUTHENTICATED';
    if (!rejected) this.connection.accepted();
    if (kind === 'run') this.onRunFrame(frame);
    else if (kind === 'history') this.onHistory(frame);
    else if (rejected) this.connection.reject();
    else if (kind === 'refusal') this.onRefusal(frame);
    else if (kind === 'gateway') this.notify('gateway', { message: frame.message });
    else if (kind === 'unreadable') this.onUnreadable();
  }

  onRunFrame(frame) {
    const { turn, fresh, gap } = this.conversations.applyFrame(frame);
    turn.heardAt = this.now();
    turn.heardEpoch = this.epoch;
    turn.lookups = 0;
    if (!fresh) return;
    const answerIsMissing = turn.state === 'done' && !turn.content;
    if (gap || answerIsMissing || !turn.query) this.wantTurns(turn.conversation);
    if (turn.cancel && !turn.cancel.sent && !ENDED.has(turn.state)) this.sendCancel(turn);
  }

  onRefusal({ code = '', message = '', requestId, sessionId }) {
    const failure = { code: String(code), message: String(message) };
    const turn = this.conversations.byRequest.get(requestId);
    if (turn && !turn.runId) {
      this.conversations.close(turn, 'refused', failure);
      // Another tab may have asked: its question belongs in view.
      if (code === 'SESSION_BUSY') this.wantTurns(turn.conversation);
      return;
    }
    if (turn) return;
    if (code === 'RUN_NOT_FOUND') {
      for (const other of this.conversations.unfinished()) if (other.cancel) this.wantTurns(other.conversation);
    } else if (this.pending && isAnswerTo(this.pending, sessionId)) {
      if (code === 'SESSION_NOT_FOUND') this.onMissing(sessionId ?? this.pending.sessionId);
      this.nextHistory();
      if (code === 'SESSION_NOT_FOUND') return;
    }
    this.notify('refusal', failure);
  }

  onMissing(sessionId) {
    const conversation = this.conversations.bySession.get(sessionId);
    if (!conversation) return;
    conversation.missing = true;
    for (const turn of conversation.turns) this.giveUp(turn);
    this.conversations.emit('conversation', { conversation });
  }

  giveUp(turn) {
    if (turn.runId) this.conversations.close(turn, 'failed', { code: 'RUN_NOT_FOUND', message: '' });
  }

  onUnreadable() {
    for (const turn of this.conversations.unfinished()) if (turn.runId) this.wantTurns(turn.conversation);
  }

  /** The tab is looked at again; its timers may have slept. */
  onVisible() {
    this.connection.nudge();
    for (const turn of this.conversations.unfinished()) if (turn.runId) this.wantTurns(turn.conversation);
  }

  // --- history, one question at a time: its frames don't say which one they answer

  wantSessions(limit = SESSIONS) {
    this.want({ sessionId: null, before: null, limit });
  }

  wantTurns(conversation, before = null) {
    if (conversation.sessionId && !conversation.missing) {
      this.want({ sessionId: conversation.sessionId, before, limit: PAGE });
    }
  }

  want(request) {
    if (this.connection.state.name !== 'open') return;
    const same = (other) => other.sessionId === request.sessionId && other.before === request.before;
    if (!this.wanted.some(same)) this.wanted.push(request);
    if (!this.pending) this.nextHistory();
  }

  nextHistory() {
    this.pending = this.wanted.shift() ?? null;
    if (!this.pending) return;
    const { sessionId, before, limit } = this.pending;
    const message = { action: 'history', limit };
    if (sessionId) message.sessionId = sessionId;
    if (before) message.before = before;
    Object.assign(this.pending, { at: this.now(), runs: new Set(), overlaps: false });
    this.connection.send(message);
  }

  onHistory(frame) {
    if (frame.kind === 'sessions') this.conversations.mergeSessions(frame.sessions);
    else if (frame.kind === 'turn') this.onStoredTurn(frame);
    else if (frame.kind === 'end') this.onHistoryEnd(frame);
  }

  onStoredTurn({ sessionId = this.pending?.sessionId, turn: stored }) {
    if (!isId(sessionId)) return;
    const known = this.conversations.byRun.has(stored?.runId);
    const turn = this.conversations.mergeTurn(sessionId, stored);
    if (!turn) return;
    if (this.pending?.sessionId === sessionId) {
      this.pending.overlaps ||= known && turn.createdAt !== null && turn.conversation.loaded;
      this.pending.runs.add(turn.runId);
    }
    if (turn.state === 'running' && turn.cancel && !turn.cancel.sent) this.sendCancel(turn);
  }

  onHistoryEnd(frame) {
    const request = this.pending;
    if (request && !isAnswerTo(request, frame.sessionId ?? null)) return;
    const conversation = request && this.conversations.bySession.get(request.sessionId);
    if (conversation) {
      // A refresh that reaches what is loaded already says nothing about how far back that goes.
      if (request.before || !request.overlaps) conversation.before = isId(frame.before) ? frame.before : null;
      conversation.loaded = true;
      if (!request.before) this.countFruitless(conversation, request.runs);
      this.conversations.emit('conversation', { conversation });
    }
    this.nextHistory();
  }

  countFruitless(conversation, runs) {
    for (const turn of conversation.turns) {
      if (ENDED.has(turn.state) || !turn.runId || runs.has(turn.runId)) continue;
      turn.fruitless = (turn.fruitless ?? 0) + 1;
      if (turn.fruitless >= FRUITLESS_LOOKUPS) this.giveUp(turn);
    }
  }

  // --- time

  keepAlive() {
    this.wantSessions(1);
  }

  tick() {
    const now = this.now();
    if (this.connection.state.name === 'open' && this.pending && now - this.pending.at > PATIENCE.history) {
      const silent = this.lastHeard <= this.pending.at;
      if (silent) return this.connection.restart();
      this.nextHistory();
    }
    for (const turn of this.conversations.unfinished()) this.watch(turn, now);
    this.conversations.emit('tick');
  }

  watch(turn, now) {
    if (turn.cancel && !turn.cancel.stale && now - turn.cancel.at > PATIENCE.cancel) {
      turn.cancel.stale = true;
      this.conversations.changed(turn);
    }
    if (!turn.runId) return this.watchUnacknowledged(turn, now);
    const live = turn.heardEpoch === this.epoch && !turn.cancel;
    const lookups = turn.lookups ?? 0;
    const first = live ? PATIENCE.liveRun : PATIENCE.lostRun;
    const patience = Math.min(PATIENCE.longestLookup, first * 2 ** lookups);
    if (now - Math.max(turn.heardAt ?? 0, turn.lookedAt ?? 0) < patience) return;
    turn.lookedAt = now;
    turn.lookups = lookups + 1;
    this.wantTurns(turn.conversation);
  }

  watchUnacknowledged(turn, now) {
    if (turn.slow || !turn.sent || now - turn.sentAt < PATIENCE.acknowledgement) return;
    turn.slow = true;
    this.conversations.changed(turn);
  }

  // --- what outlives a reload

  onChange({ type, turn }) {
    if (type === 'turn' && turn.own) this.keep();
    else if (type === 'conversation') this.keep();
  }

  keep() {
    const entries = [...this.conversations.all]
      .flatMap((conversation) => conversation.turns)
      .filter((turn) => turn.own && (!ENDED.has(turn.state) || turn.state === 'refused'))
      .map((turn) => ({
        requestId: turn.requestId,
        runId: turn.runId,
        sessionId: turn.conversation.sessionId,
        query: turn.query,
        askedAt: turn.startedAt,
        refusal: turn.state === 'refused' ? turn.failure : null,
      }));
    this.storage.keepOutbox(entries);
  }

  restore() {
    const entries = this.storage.outbox();
    for (const { requestId, runId, sessionId, query, askedAt, refusal } of entries) {
      const conversation = isId(sessionId) ? this.conversations.ofSession(sessionId) : this.newConversation();
      const at = Number.isFinite(askedAt) ? askedAt : this.now();
      const turn = this.conversations.ask(conversation, {
        requestId,
        query,
        runId: isId(runId) ? runId : null,
        askedAt: at,
      });
      if (refusal) this.conversations.close(turn, 'refused', refusal);
    }
  }

  newConversation() {
    const { shown } = this.conversations;
    return shown.sessionId || shown.turns.length ? this.conversations.create(null) : shown;
  }
}

/**
 * Whether a frame about that session is the answer to that request. What ended an earlier one may come twice: the
 * service posts a frame again when its arrival was not confirmed, and without a number it isn't known for the same.
 */
function isAnswerTo({ sessionId }, named) {
  return named === undefined || named === sessionId;
}
