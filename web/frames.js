// Tells what a text from the socket is, before anything trusts its shape.

const RUN_TYPES = new Set(['started', 'status', 'content', 'done', 'cancelled', 'error']);
const ID = /^[A-Za-z0-9_-]{1,64}$/;

export const isId = (value) => typeof value === 'string' && ID.test(value);

/**
 * `{ kind, frame }`; kind is `run` (a frame of a run), `refusal` (an error without a run), `history`,
 * `gateway` (API Gateway's own error, which has no type), `unknown` (a later version's) or `unreadable`.
 */
export function readFrame(data) {
  const frame = parse(data);
  if (frame === null) return { kind: 'unreadable', frame: {} };
  if (frame.type === undefined) return { kind: isGatewayError(frame) ? 'gateway' : 'unreadable', frame };
  if (frame.type === 'history') return { kind: 'history', frame };
  if (!RUN_TYPES.has(frame.type)) return { kind: 'unknown', frame };
  if (isRunFrame(frame)) return { kind: 'run', frame };
  return { kind: frame.type === 'error' ? 'refusal' : 'unreadable', frame };
}

function parse(data) {
  if (typeof data !== 'string') return null;
  try {
    const value = JSON.parse(data);
    return value !== null && typeof value === 'object' && !Array.isArray(value) ? value : null;
  } catch {
    return null;
  }
}

function isGatewayError(frame) {
  return typeof frame.message === 'string' && ('connectionId' in frame || 'requestId' in frame);
}

function isRunFrame(frame) {
  return isId(frame.runId) && isId(frame.sessionId);
}
