// What the service accepts as a question, so that a refusal costs no round trip.

export const MAX_CHARACTERS = 8_000;
export const MAX_BYTES = 24 * 1024;
export const MAX_FRAME_BYTES = 32 * 1024;
const NEAR = 0.9;

const encoder = new TextEncoder();
const decoder = new TextDecoder('utf-8', { ignoreBOM: true });

/** `text` with unpaired surrogates replaced: JSON carries them, UTF-8 does not. */
export function wellFormed(text) {
  return decoder.decode(encoder.encode(text));
}

/** Characters as the service counts them (code points), and UTF-8 bytes. */
export function measure(text) {
  return { characters: [...text].length, bytes: encoder.encode(text).length };
}

/** `{ characters, bytes, near, over }` of a question; control characters grow when escaped in JSON. */
export function fit(text) {
  const { characters, bytes } = measure(text);
  const frame = encoder.encode(JSON.stringify(text)).length + 256;
  const over = characters > MAX_CHARACTERS || bytes > MAX_BYTES || frame > MAX_FRAME_BYTES;
  const near = over || characters > MAX_CHARACTERS * NEAR || bytes > MAX_BYTES * NEAR;
  return { characters, bytes, near, over };
}
