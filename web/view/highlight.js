// Finds a claim's quotes in an excerpt the way the guard compared them: letter by letter, with every run
// of white space as one space. A quote may run over a line's end.

const MAX_HITS = 200;

/** For each line its pieces `{ text, marked }`. */
export function highlight(lines, quotes) {
  const whole = lines.join('\n');
  const marks = new Uint8Array(whole.length);
  const { folded, origin } = fold(whole);
  for (const quote of quotes) mark(fold(quote).folded.trim(), folded, origin, marks);
  let offset = 0;
  return lines.map((line) => {
    const pieces = split(line, marks.subarray(offset, offset + line.length));
    offset += line.length + 1;
    return pieces;
  });
}

/** Whether `quote` occurs in the excerpt. */
export function occurs(lines, quote) {
  const wanted = fold(quote).folded.trim();
  return wanted !== '' && fold(lines.join('\n')).folded.includes(wanted);
}

function fold(value) {
  let folded = '';
  const origin = [];
  let spaced = false;
  for (let index = 0; index < value.length; index += 1) {
    const space = /\s/.test(value[index]);
    if (space && spaced) continue;
    folded += space ? ' ' : value[index];
    origin.push(index);
    spaced = space;
  }
  return { folded, origin };
}

function mark(wanted, folded, origin, marks) {
  if (!wanted) return;
  let at = folded.indexOf(wanted);
  for (let hits = 0; at !== -1 && hits < MAX_HITS; hits += 1) {
    marks.fill(1, origin[at], origin[at + wanted.length - 1] + 1);
    at = folded.indexOf(wanted, at + wanted.length);
  }
}

function split(line, marks) {
  const pieces = [];
  let start = 0;
  for (let index = 1; index <= line.length; index += 1) {
    if (index < line.length && marks[index] === marks[start]) continue;
    pieces.push({ text: line.slice(start, index), marked: marks[start] === 1 });
    start = index;
  }
  return pieces;
}
