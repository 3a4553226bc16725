// One WebSocket at a time, kept open: growing, jittered delays between tries, and a stop when the
// service never lets us in. Everything it depends on is handed in.

export const TIMING = Object.freeze({
  firstDelay: 1_000,
  longestDelay: 30_000,
  stableAfter: 30_000,
  connectTimeout: 15_000,
  // A refused handshake and an unreachable server look alike in a browser: about a minute of tries.
  triesBeforeStop: 8,
  rejectionsBeforeStop: 3,
});

/** Milliseconds before try number `failures + 1`: doubled each time up to a cap, half of it random. */
export function reconnectDelay(failures, random, timing = TIMING) {
  const ceiling = Math.min(timing.longestDelay, timing.firstDelay * 2 ** Math.max(failures - 1, 0));
  return ceiling * (0.5 + random() / 2);
}

/**
 * States: `{ name: 'idle' | 'connecting' | 'open' }`, `{ name: 'waiting', delay }` and
 * `{ name: 'stopped', reason: 'unreachable' | 'rejected' | 'signedOut' | 'config' }`; `retry()` leaves the last.
 *
 * `address()` resolves to `{ url, protocols }`; an error with `fatal` or `signedOut` set stops at once.
 * `onRefused()`: a try ended before it was open, by a refusal or for want of a network.
 */
export function createConnection({
  address,
  createSocket = (url, protocols) => new WebSocket(url, protocols),
  random = Math.random,
  timing = TIMING,
  onState = () => {},
  onOpen = () => {},
  onRefused = () => {},
  onData = () => {},
}) {
  let socket = null;
  let attempt = 0; // events of an abandoned try carry an older number and are ignored
  let failures = 0;
  let neverOpened = 0;
  let rejections = 0;
  let state = { name: 'idle' };
  const timers = { retry: 0, connect: 0, stable: 0 };

  function enter(next) {
    state = next;
    onState(next);
  }

  function abandon() {
    Object.values(timers).forEach(clearTimeout);
    attempt += 1;
    const old = socket;
    socket = null;
    try {
      old?.close();
    } catch {
      // A socket that can't be closed is of no further interest.
    }
  }

  async function connect() {
    abandon();
    const mine = attempt;
    enter({ name: 'connecting' });
    timers.connect = setTimeout(() => lost(false), timing.connectTimeout);
    try {
      const { url, protocols } = await address();
      if (mine === attempt) listen(createSocket(url, protocols), mine);
    } catch (error) {
      if (mine !== attempt) return;
      if (error?.fatal) stop('config');
      else if (error?.signedOut) stop('signedOut');
      else lost(false);
    }
  }

  function listen(candidate, mine) {
    let opened = false;
    socket = candidate;
    candidate.onopen = () => {
      if (mine !== attempt) return;
      opened = true;
      neverOpened = 0;
      clearTimeout(timers.connect);
      timers.stable = setTimeout(() => { failures = 0; }, timing.stableAfter);
      enter({ name: 'open' });
      onOpen();
    };
    candidate.onmessage = (event) => {
      if (mine === attempt) onData(event.data);
    };
    candidate.onclose = () => {
      if (mine !== attempt) return;
      if (!opened) onRefused();
      lost(opened);
    };
  }

  function lost(opened) {
    abandon();
    failures += 1;
    if (!opened) neverOpened += 1;
    if (neverOpened >= timing.triesBeforeStop) return stop('unreachable');
    return wait();
  }

  function wait() {
    const delay = reconnectDelay(failures, random, timing);
    timers.retry = setTimeout(connect, delay);
    enter({ name: 'waiting', delay });
  }

  function stop(reason) {
    abandon();
    enter({ name: 'stopped', reason });
  }

  return {
    get state() {
      return state;
    },
    connect,
    send(message) {
      if (state.name !== 'open' || socket.readyState !== 1) return false;
      socket.send(JSON.stringify(message));
      return true;
    },
    /** The user asks for another try. */
    retry() {
      neverOpened = 0;
      rejections = 0;
      failures = 0;
      connect();
    },
    /** The network is back or the tab is looked at: no reason to wait for the timer. */
    nudge() {
      if (state.name === 'waiting') connect();
    },
    /** The connection looks dead although it was never closed. */
    restart() {
      if (state.name === 'open') lost(true);
    },
    /** The service says that this connection isn't signed in. */
    reject() {
      rejections += 1;
      if (rejections >= timing.rejectionsBeforeStop) stop('rejected');
      else lost(true);
    },
    /** The service has answered on this connection, so it knows who we are. */
    accepted() {
      rejections = 0;
    },
  };
}
