// What two texts, or two rows of calls, have in common and what they have not.

/** Pairs of positions of a longest common subsequence; quadratic, so its callers bound both sides. */
const common = (one, other, same) => {
  const width = other.length + 1;
  const best = new Uint16Array((one.length + 1) * width);
  for (let i = one.length - 1; i >= 0; i--) {
    for (let j = other.length - 1; j >= 0; j--) {
      const weight = same(one[i], other[j]);
      const taken = weight ? best[(i + 1) * width + j + 1] + weight : 0;
      best[i * width + j] = Math.max(taken, best[(i + 1) * width + j], best[i * width + j + 1]);
    }
  }
  const pairs = [];
  let i = 0;
  let j = 0;
  while (i < one.length && j < other.length) {
    const weight = same(one[i], other[j]);
    if (weight && best[i * width + j] === best[(i + 1) * width + j + 1] + weight) pairs.push([i++, j++]);
    else if (best[(i + 1) * width + j] >= best[i * width + j + 1]) i++;
    else j++;
  }
  return pairs;
};

const MOST_WORDS = 700;
const LEAST_ALIKE = 0.25;

/** The text as pieces ['same' | 'in' | 'out', text] against a reference; null where too little of it is alike. */
const words = (reference, text) => {
  const split = (from) => from.match(/\s+|[\p{L}\p{N}_]+|[^\s\p{L}\p{N}_]/gu) || [];
  const before = split(reference);
  const now = split(text);
  if (before.length > MOST_WORDS || now.length > MOST_WORDS) return null;
  const pairs = common(before, now, (a, b) => (a === b ? 1 : 0));
  const solid = pairs.filter(([at]) => before[at].trim()).length;
  const most = Math.max(before.filter((w) => w.trim()).length, now.filter((w) => w.trim()).length);
  if (!most || solid / most < LEAST_ALIKE) return null;
  const pieces = [];
  const push = (kind, piece) => {
    if (!piece) return;
    const last = pieces[pieces.length - 1];
    if (last && last[0] === kind) last[1] += piece;
    else pieces.push([kind, piece]);
  };
  let i = 0;
  let j = 0;
  for (const [a, b] of [...pairs, [before.length, now.length]]) {
    push('out', before.slice(i, a).join(''));
    push('in', now.slice(j, b).join(''));
    if (a < before.length) push('same', before[a]);
    i = a + 1;
    j = b + 1;
  }
  return pieces;
};

/** Elements of the text, with what differs from the reference marked. */
const marked = (reference, text) => {
  const pieces = reference === null || reference === text ? null : words(reference, text);
  if (!pieces) return [text];
  return pieces.map(([kind, piece]) => {
    if (kind === 'same') return piece;
    return element('mark', { class: kind, title: kind === 'in' ? 'only here' : 'not here' }, piece);
  });
};

const canonical = (value) => {
  if (value === null || typeof value !== 'object') return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`;
  return `{${Object.keys(value).sort().map((key) => `${JSON.stringify(key)}:${canonical(value[key])}`).join(',')}}`;
};

const alike = (wanted, made) => {
  if (wanted.name !== made.name) return 0;
  return wanted.any || canonical(wanted.args ?? null) === canonical(made.args ?? null) ? 3 : 2;
};

/** Rows of calls, one column for each trajectory, so that calls of one row belong together; null where one lacks it. */
const aligned = (columns) => {
  const first = columns[0];
  const slots = Array.from({ length: first.length + 1 }, () => columns.map(() => []));
  columns.slice(1).forEach((calls, number) => {
    const column = number + 1;
    let reached = 0;
    let at = 0;
    for (const [a, b] of [...common(first, calls, alike), [first.length, calls.length]]) {
      for (; at < b; at++) slots[reached][column].push(calls[at]);
      if (a < first.length) {
        slots[a + 1][column].unshift(calls[b]);
        slots[a + 1][column].paired = true;
      }
      reached = a + 1 > first.length ? first.length : a + 1;
      at = b + 1;
    }
  });
  const rows = [];
  slots.forEach((slot, number) => {
    if (number > 0) rows.push(columns.map((_, c) => (c === 0 ? first[number - 1] : slot[c].paired ? slot[c].shift() : null)));
    const deep = Math.max(...slot.map((extra) => extra.length));
    for (let i = 0; i < deep; i++) rows.push(columns.map((_, c) => slot[c][i] ?? null));
  });
  return rows;
};
