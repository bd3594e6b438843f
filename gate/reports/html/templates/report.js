// The table of cases: search, filters, order, addresses, and each case's trials side by side.

document.documentElement.classList.add('js');

const SIDES = { now: 'This change', beside: 'Base, run now', before: 'Baseline' };
const ORDERS = {
  first: ['What to look at first', (a, b) => a.rank - b.rank],
  id: ['Name', (a, b) => (a.id < b.id ? -1 : a.id > b.id ? 1 : 0)],
  lost: ['Largest loss', (a, b) => a.gain - b.gain || a.rank - b.rank],
  gained: ['Largest gain', (a, b) => b.gain - a.gain || a.rank - b.rank],
  slow: ['Slowest', (a, b) => (b.seconds ?? -1) - (a.seconds ?? -1)],
};
const AT_ONCE = 40;
const ON_PAPER = 400;

const share = (passed, trials) => (trials ? passed / trials : null);
const seconds = (value) => {
  if (value === null || value === undefined) return '–';
  if (value > 0 && value < 0.0001) return `${Number((value * 1e6).toFixed(value < 1e-5 ? 1 : 0))} µs`;
  if (value < 1) return `${Number((value * 1000).toFixed(value < 0.01 ? 1 : 0))} ms`;
  if (value < 120) return `${value < 10 ? value.toFixed(2) : value.toFixed(1)} s`;
  return `${Math.floor(value / 60)} min ${Math.round(value % 60)} s`;
};
const figure = (value, unit) => {
  if (value === null || value === undefined) return '–';
  if (unit === 'seconds') return seconds(value);
  if (unit === 'usd') return `$${value.toPrecision(3)}`;
  if (unit === 'count' || unit === 'percent') return String(Math.round(value * 100) / 100);
  return unit === 'likert' ? value.toFixed(2) : String(Math.round(value * 1000) / 1000);
};
const pill = (tone, text) => element('span', { class: `pill ${tone}` }, text);

/** The rows of one suite, as objects. */
const readCases = (number) => {
  const held = data(`cases-${number}`);
  const cases = held.rows.map((row, at) => {
    const [id, status, tone, counts, tags, complexity, criteria, time, reason, asked, piece, rank, better, place, reasons, quarantine] = row;
    const [passed, trials, before, stored, errors] = counts;
    const now = share(passed, trials);
    const was = share(before, stored);
    return {
      at, number, id, status, tone, passed, trials, before, stored, errors, complexity, reason, asked, piece, rank, place, quarantine,
      better: better === 1,
      seconds: time,
      reasons: [reason, ...reasons].filter(Boolean),
      tags: tags.map((one) => held.tags[one]),
      criteria: criteria.map((one) => held.criteria[one]),
      gain: now === null || was === null ? 0 : now - was,
      text: '',
    };
  });
  return { cases, tags: held.tags, criteria: held.criteria, units: held.units };
};

const matchText = (one) => {
  if (!one.text) one.text = [one.id, one.asked, ...one.reasons, ...one.tags].join('\n').toLowerCase();
  return one.text;
};

// --- what is in a case ------------------------------------------------------------------------------

const pieces = new Map();

/** The contents come after this script: the table can be used before a browser has read them. */
const whole = new Promise((done) => { if (document.readyState === 'loading') addEventListener('DOMContentLoaded', done); else done(); });

/** The content of a case; null where the page does not have it. */
const contentOf = async (one) => {
  if (one.piece < 0) return null;
  await whole;
  const name = `piece-${one.number}-${one.piece}`;
  if (!pieces.has(name)) {
    const bytes = Uint8Array.from(atob(data(name)), (c) => c.charCodeAt(0));
    const unpacked = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('deflate'));
    pieces.set(name, new Response(unpacked).json());
    if (pieces.size > 12) pieces.delete(pieces.keys().next().value);
  }
  return (await pieces.get(name))[one.at] ?? null;
};

const nameOf = (trial) => `${SIDES[trial.side]}, trial ${trial.number}`;
const outcome = (trial) => (trial.passed === true ? ['good', 'passed'] : trial.passed === false ? ['bad', 'failed'] : ['mute', 'not measured']);

/** The trials that tell most: what passed before beside what fails now. */
const telling = (trials) => {
  const find = (side, passed) => trials.findIndex((t) => t.side === side && t.passed === passed);
  const failing = find('now', false);
  const now = failing >= 0 ? failing : trials.findIndex((t) => t.side === 'now');
  const other = [find('before', true), find('beside', true), failing >= 0 ? find('now', true) : -1, trials.findIndex((t) => t.side === 'before')];
  const chosen = [other.find((at) => at >= 0 && at !== now) ?? -1, now];
  return new Set(chosen.filter((at) => at >= 0));
};

/** A value with what it stands in place of: words where they are alike, else both whole. */
const replaced = (before, now) => {
  const pieces = marked(before, now);
  if (before !== null && pieces.length > 1) return pieces;
  return [before === null ? null : [element('mark', { class: 'out' }, before), ' '], element('mark', { class: 'in' }, now)].flat();
};

const shown = (value) => (typeof value === 'string' ? value : JSON.stringify(value, null, 1));

const argumentRows = (call, reference) => {
  if (call.args === undefined || call.args === null) return call.any ? [element('div', { class: 'soft tiny' }, 'any arguments')] : [];
  const plain = typeof call.args === 'object' && !Array.isArray(call.args);
  const other = reference && !reference.any ? reference.args : undefined;
  if (!plain) return [element('div', { class: 'tiny' }, ...marked(other === undefined ? null : shown(other), shown(call.args)))];
  const known = other && typeof other === 'object' && !Array.isArray(other) ? other : null;
  const list = element('dl');
  for (const [key, value] of Object.entries(call.args)) {
    const differs = known !== null && canonical(known[key] ?? null) !== canonical(value);
    const text = shown(value);
    list.append(element('dt', {}, key), element('dd', {}, ...(differs ? replaced(key in known ? shown(known[key]) : null, text) : [text])));
  }
  for (const key of known ? Object.keys(known) : []) {
    if (!(key in call.args)) list.append(element('dt', {}, key), element('dd', {}, element('mark', { class: 'out' }, shown(known[key]))));
  }
  return [list];
};

const callCell = (call, reference, isFirst) => {
  if (!call) return element('div', isFirst || !reference ? { 'aria-hidden': 'true' } : { class: 'call missing' }, isFirst || !reference ? '' : `not called: ${reference.name}`);
  const degree = isFirst || !reference ? 0 : alike(reference, call);
  const state = isFirst ? '' : !reference ? 'added' : degree === 3 ? '' : 'changed';
  const said = { added: 'only here', changed: 'other arguments' }[state];
  const cell = element('div', { class: `call ${state}` }, said ? element('span', { class: 'note' }, said) : null, element('span', { class: 'tool' }, ...breakable(call.name)), ...argumentRows(call, isFirst ? null : reference));
  if (call.error) cell.append(element('div', { class: 'failed tiny' }, `error: ${call.error}`));
  if (call.result !== undefined && call.result !== '') cell.append(element('details', {}, element('summary', {}, 'result'), element('pre', {}, shown(call.result))));
  return cell;
};

const answerCell = (turn, reference) => {
  const parts = [];
  if (turn && turn.thought) parts.push(element('details', { class: 'thought' }, element('summary', {}, 'thought'), turn.thought));
  if (turn && turn.before) parts.push(element('details', { class: 'thought' }, element('summary', {}, 'said before the answer'), turn.before));
  if (turn && turn.said) parts.push(element('div', { class: 'answer' }, ...marked(reference, turn.said)));
  return parts.length ? element('div', { style: null }, ...parts) : null;
};

const scoreCell = (score, unit) => {
  if (!score) return element('div', { class: 'score soft' }, '–');
  const tone = score.holds === true ? 'good' : score.holds === false ? 'bad' : 'mute';
  const text = score.error ? 'not measured' : score.value === undefined || score.value === null ? 'does not apply' : figure(score.value, unit);
  const cell = element('div', { class: 'score' }, element('b', { class: `${tone} toned` }, text, score.holds === false ? ' ✕' : score.holds === true ? ' ✓' : ''));
  if (score.votes) cell.append(' ', element('span', { class: 'soft tiny' }, `judge's votes ${score.votes.map((v) => figure(v)).join(' · ')}`));
  for (const [name, value] of Object.entries(score.parts || {})) cell.append(element('span', { class: 'why' }, `${name}: ${figure(value)}`));
  const why = score.error || score.reason;
  if (why) cell.append(element('span', { class: 'why' }, why));
  return cell;
};

const headCell = (trial) => {
  if (trial.expected) return element('div', { class: 'head' }, element('b', {}, 'Expected'), element('span', { class: 'soft' }, 'by the author of the case'));
  const [tone, text] = outcome(trial);
  const notes = [trial.seconds === undefined ? '' : seconds(trial.seconds), trial.usd === undefined ? '' : figure(trial.usd, 'usd'), trial.tokens === undefined ? '' : `${trial.tokens} tokens`, trial.model || '', trial.tag ? `(${trial.tag})` : ''];
  return element('div', { class: 'head' }, element('b', {}, nameOf(trial)), pill(tone, text), element('span', { class: 'soft' }, notes.filter(Boolean).join(' · ')));
};

/** Trials side by side, turn by turn; the first column is what the others are compared with. */
const compared = (content, chosen, units) => {
  const columns = chosen.map((at) => content.trials[at]);
  const states = content.expected.some((calls) => calls) || content.wanted.some((text) => text);
  const expected = { expected: true, turns: content.users.map((_, at) => ({ calls: content.expected[at] ?? null, said: content.wanted[at] || '' })), scores: {} };
  while (states && expected.turns.length < content.expected.length) expected.turns.push({ calls: content.expected[expected.turns.length], said: '' });
  const sides = states ? [expected, ...columns] : columns;
  const grid = element('div', { class: 'columns' }, ...sides.map(headCell));
  grid.style.setProperty('--n', sides.length);
  for (const trial of sides.filter((one) => one.error)) grid.append(element('p', { class: 'trial-error user' }, `${nameOf(trial)}: ${trial.error}`));
  const criteria = [...new Set(columns.flatMap((trial) => Object.keys(trial.scores || {})))];
  for (const name of criteria) {
    const title = element('div', { class: states ? 'score soft' : 'criterion-name' }, ...breakable(name));
    grid.append(title, ...columns.map((trial) => scoreCell((trial.scores || {})[name], units[name])));
  }
  const turns = Math.max(content.users.length, ...sides.map((trial) => (trial.turns || []).length));
  for (let at = 0; at < turns; at++) grid.append(...turnCells(sides, content, at, turns));
  return element('div', { class: 'scroller', tabindex: '0', role: 'region', 'aria-label': 'Trials side by side' }, grid);
};

const turnCells = (sides, content, at, turns) => {
  const held = sides.map((trial) => (trial.turns || [])[at] ?? null);
  const said = content.users[at] || held.map((turn) => turn && turn.user).find(Boolean) || '';
  const label = turns > 1 ? `Turn ${at + 1}` : 'Asked';
  const cells = [element('div', { class: 'user' }, element('b', {}, label), said || element('span', { class: 'soft small' }, 'what was asked is not in the record'))];
  const stated = held[0] && !(sides[0].expected && held[0].calls === null);
  const rows = aligned(held.map((turn) => (turn && turn.calls) || []));
  for (const row of rows) cells.push(...row.map((call, column) => callCell(call, stated ? row[0] : column ? call : null, column === 0 || !stated)));
  const from = held.findIndex((turn) => turn && turn.said);
  const answers = held.map((turn, column) => answerCell(turn, column <= from ? null : held[from]?.said ?? null));
  cells.push(...answers.map((cell, column) => cell || element('div', {}, sides[column].expected ? '' : nothingSaid(sides[column], held[column]))));
  const more = held.map((turn) => (turn && turn.more) || 0);
  if (more.some(Boolean)) cells.push(...more.map((n) => element('div', { class: 'tiny soft' }, n ? `${n} more calls are not shown` : '')));
  return cells;
};

const nothingSaid = (trial, turn) => {
  const why = trial.error ? 'no answer' : trial.side === 'before' ? 'a stored baseline keeps calls and scores, not what was said' : turn ? 'no answer in words' : 'this turn was not reached';
  return element('div', { class: 'answer none' }, why);
};

const panelOf = (one, content, units, address) => {
  const panel = element('div', { class: 'panel' });
  const facts = [one.place, one.complexity, ...one.tags.map((tag) => `#${tag}`), one.quarantine ? `in quarantine: ${one.quarantine}` : ''].filter(Boolean);
  panel.append(element('p', { class: 'chips' }, ...facts.map((fact) => element('span', { class: 'chip' }, fact)), element('a', { class: 'tiny', href: address }, 'Link to this case')));
  if (one.reasons.length) panel.append(element('h3', {}, 'Why trials failed'), element('ul', {}, ...one.reasons.map((reason) => element('li', {}, ...breakable(reason)))));
  if (content && content.log) panel.append(element('details', {}, element('summary', { class: 'small' }, 'What the agent wrote in the worst trial'), element('pre', { class: 'log' }, content.log)));
  if (!content) {
    panel.append(element('p', { class: 'soft' }, 'The conversation of this case is not in this page: gate explain RECORD --case ID shows its trials.'));
    return panel;
  }
  const chosen = telling(content.trials);
  const place = element('div');
  const draw = () => place.replaceChildren(compared(content, [...chosen].sort((a, b) => order(content.trials[a]) - order(content.trials[b]) || a - b), units));
  panel.append(element('h3', {}, 'Trials'), picker(content, chosen, draw), place);
  draw();
  return panel;
};

const order = (trial) => ['before', 'beside', 'now'].indexOf(trial.side);

const picker = (content, chosen, draw) => {
  const rows = Object.entries(SIDES).map(([side, title]) => {
    const own = content.trials.map((trial, at) => [trial, at]).filter(([trial]) => trial.side === side);
    if (!own.length) return null;
    const buttons = own.map(([trial, at]) => {
      const [tone, text] = outcome(trial);
      const sign = { good: '✓', bad: '✕', mute: '–' }[tone];
      const press = (event) => {
        if (chosen.has(at)) chosen.delete(at);
        else chosen.add(at);
        if (!chosen.size) chosen.add(at);
        event.currentTarget.setAttribute('aria-pressed', String(chosen.has(at)));
        draw();
      };
      return element('button', { type: 'button', class: 'pick', 'aria-pressed': String(chosen.has(at)), 'aria-label': `${nameOf(trial)}, ${text}`, on: { click: press } }, `${sign} ${trial.number}`);
    });
    const left = content.left[side] ? element('span', { class: 'tiny soft' }, `and ${content.left[side]} more that are not shown`) : null;
    return element('div', { class: 'chips', role: 'group', 'aria-label': title }, element('span', { class: 'chip-name' }, title), ...buttons, left);
  });
  return element('div', { class: 'picks' }, ...rows.filter(Boolean));
};

// --- the table -------------------------------------------------------------------------------------

class CaseTable {
  constructor(place, several) {
    this.place = place;
    this.number = Number(place.dataset.suite);
    this.several = several;
    Object.assign(this, readCases(this.number));
    this.byId = new Map(this.cases.map((one) => [one.id, one]));
    this.state = { q: '', status: '', tag: '', complexity: '', criterion: '', sort: 'first' };
    this.opened = new Map();
    this.build();
    this.apply();
  }

  build() {
    const select = (name, label, options) => {
      const made = element('select', { on: { change: () => this.set({ [name]: made.value }) } }, ...options.map(([value, text]) => element('option', { value }, text)));
      this[`${name}Select`] = made;
      return element('label', {}, label, made);
    };
    const counted = (values) => {
      const counts = new Map();
      for (const value of values) counts.set(value, (counts.get(value) || 0) + 1);
      return [...counts].sort((a, b) => b[1] - a[1]);
    };
    const filter = (name, label, values, all) => {
      const options = counted(values);
      return options.length > 1 || (name !== 'status' && options.length) ? select(name, label, [['', all], ...options.map(([value, n]) => [value, `${value} (${n})`])]) : null;
    };
    this.search = element('input', { type: 'search', placeholder: 'Name, question, reason', autocomplete: 'off', spellcheck: 'false', on: { input: () => this.set({ q: this.search.value }) } });
    const tools = element(
      'div', { class: 'tools', role: 'search', 'aria-label': 'Filter cases' },
      element('label', { class: 'wide' }, 'Search', this.search),
      filter('status', 'Status', this.cases.map((one) => one.status), 'Any status'),
      filter('tag', 'Tag', this.cases.flatMap((one) => one.tags), 'Any tag'),
      new Set(this.cases.map((one) => one.complexity)).size > 1 ? filter('complexity', 'Complexity', this.cases.map((one) => one.complexity).filter(Boolean), 'Any') : null,
      filter('criterion', 'Fails', this.cases.flatMap((one) => one.criteria), 'Any criterion'),
      select('sort', 'Order', Object.entries(ORDERS).map(([key, [name]]) => [key, name])),
      (this.clear = element('button', { type: 'button', hidden: true, on: { click: () => this.set({ q: '', status: '', tag: '', complexity: '', criterion: '' }) } }, 'Clear')),
    );
    this.found = element('p', { class: 'found', 'aria-live': 'polite' });
    this.body = element('tbody');
    const heads = [['what', 'Case', 'id'], ['state', 'Status', 'first'], ['', 'Passed', 'lost'], ['', 'Baseline', ''], ['fails', 'Fails', ''], ['seconds', 'Time', 'slow']];
    this.heads = [];
    const head = heads.map(([kind, text, sort]) => {
      const cell = element('th', { scope: 'col', class: kind || null }, sort ? element('button', { type: 'button', title: ORDERS[sort][0], on: { click: () => this.set({ sort }) } }, text) : text);
      if (sort) this.heads.push([cell, sort]);
      return cell;
    });
    this.table = element('table', { class: 'list' }, element('caption', { class: 'unseen' }, 'All cases'), element('thead', {}, element('tr', {}, ...head)), this.body);
    this.more = element('button', { type: 'button', hidden: true, on: { click: () => this.grow() } }, 'Show more');
    this.place.append(tools, this.found, this.table, this.more);
    new IntersectionObserver((seen) => seen.some((one) => one.isIntersecting) && this.grow(), { rootMargin: '600px' }).observe(this.more);
  }

  /** Takes filters over; what changes is in the address, too. */
  set(change, { silent = false } = {}) {
    Object.assign(this.state, change);
    this.apply();
    if (!silent) this.write();
  }

  write() {
    const said = new URLSearchParams();
    for (const [key, value] of Object.entries(this.state)) if (value && !(key === 'sort' && value === 'first')) said.set(key, value);
    if (this.several && [...said].length) said.set('suite', this.number);
    const text = said.toString().replaceAll('+', '%20');
    history.replaceState(null, '', text ? `#${text}` : '#cases');
  }

  apply() {
    const { q, status, tag, complexity, criterion, sort } = this.state;
    const wanted = q.trim().toLowerCase().split(/\s+/).filter(Boolean);
    this.shown = this.cases.filter((one) => (!status || one.status === status) && (!tag || one.tags.includes(tag)) && (!complexity || one.complexity === complexity) && (!criterion || one.criteria.includes(criterion)) && (!wanted.length || wanted.every((word) => matchText(one).includes(word))));
    this.shown.sort((a, b) => ORDERS[sort][1](a, b) || a.at - b.at);
    for (const key of ['status', 'tag', 'complexity', 'criterion', 'sort']) if (this[`${key}Select`]) this[`${key}Select`].value = this.state[key];
    if (this.search.value !== q) this.search.value = q;
    for (const [cell, key] of this.heads) {
      if (key === sort) cell.setAttribute('aria-sort', key === 'id' ? 'ascending' : 'descending');
      else cell.removeAttribute('aria-sort');
    }
    this.clear.hidden = !(q || status || tag || complexity || criterion);
    const all = this.cases.length.toLocaleString('en');
    this.found.textContent = this.shown.length === this.cases.length ? `${all} cases` : `${this.shown.length.toLocaleString('en')} of ${all} cases`;
    this.opened.clear();
    this.body.replaceChildren();
    this.drawn = 0;
    this.grow();
  }

  grow() {
    const next = this.shown.slice(this.drawn, this.drawn + AT_ONCE);
    this.drawn += next.length;
    this.body.append(...next.map((one) => this.row(one)));
    this.more.hidden = this.drawn >= this.shown.length;
    this.more.textContent = `Show more: ${(this.shown.length - this.drawn).toLocaleString('en')} are not shown`;
  }

  row(one) {
    const hint = one.reasons[0] || one.asked;
    const open = element(
      'button', { type: 'button', class: 'open', 'aria-expanded': 'false', on: { click: () => this.toggle(one) } },
      element('span', { class: 'id' }, ...breakable(one.id)), hint ? element('span', { class: 'hint' }, hint) : null,
    );
    const errors = one.errors ? ` +${one.errors} lost` : '';
    const row = element(
      'tr', { class: 'row' }, element('th', { scope: 'row', class: 'what' }, open),
      element('td', { class: 'state' }, pill(one.tone, one.status), one.better ? [' ', pill('good', 'gained')] : null),
      element('td', {}, one.trials ? `${one.passed}/${one.trials}${errors}` : `–${errors}`),
      element('td', { class: 'soft' }, one.stored ? `${one.before}/${one.stored}` : '–'),
      element('td', { class: 'fails small soft' }, ...one.criteria.slice(0, 1).flatMap(breakable), one.criteria.length > 1 ? ` and ${one.criteria.length - 1} more` : ''),
      element('td', { class: 'seconds' }, seconds(one.seconds)),
    );
    one.row = row;
    one.open = open;
    return row;
  }

  async toggle(one) {
    if (this.opened.has(one.id)) return this.close(one);
    const cell = element('td', { colspan: '6' }, element('p', { class: 'soft' }, 'Unpacking …'));
    const detail = element('tr', { class: 'detail' }, cell);
    this.opened.set(one.id, detail);
    one.row.after(detail);
    one.row.classList.add('open-row');
    one.open.setAttribute('aria-expanded', 'true');
    detail.addEventListener('keydown', (event) => {
      if (event.key !== 'Escape') return;
      this.close(one);
      one.open.focus();
    });
    history.replaceState(null, '', this.address(one));
    cell.replaceChildren(panelOf(one, await contentOf(one), this.units, this.address(one)));
    return undefined;
  }

  close(one) {
    this.opened.get(one.id)?.remove();
    this.opened.delete(one.id);
    one.row.classList.remove('open-row');
    one.open.setAttribute('aria-expanded', 'false');
    this.write();
  }

  address(one) {
    return `#case=${encodeURIComponent(one.id.toWellFormed ? one.id.toWellFormed() : one.id)}${this.several ? `&suite=${this.number}` : ''}`;
  }

  /** Opens a case wherever it is in the table. */
  async show(id) {
    const one = this.byId.get(id);
    if (!one) return false;
    if (!this.shown.includes(one)) this.set({ q: '', status: '', tag: '', complexity: '', criterion: '' }, { silent: true });
    while (!this.body.contains(one.row) && this.drawn < this.shown.length) this.grow();
    if (!this.opened.has(id)) await this.toggle(one);
    one.row.scrollIntoView({ block: 'start', behavior: 'instant' });
    one.open.focus({ preventScroll: true });
    return true;
  }
}

const places = [...document.querySelectorAll('.table-of-cases')];
const tables = places.map((place) => new CaseTable(place, places.length > 1));
performance.mark('table');

// A case's name in the text opens its trials.
for (const table of tables) {
  for (const code of table.place.closest('article').querySelectorAll('.written code')) {
    const one = table.byId.get(code.textContent);
    if (one) code.replaceWith(element('a', { href: table.address(one) }, code.cloneNode(true)));
  }
}

// What is printed has more than what a screen needs at once: the cases that matter come first.
addEventListener('beforeprint', () => {
  for (const table of tables) while (table.drawn < Math.min(ON_PAPER, table.shown.length)) table.grow();
});

/** Does what the address says: opens a case, or sets filters. */
const follow = async () => {
  const said = new URLSearchParams(location.hash.slice(1));
  const wanted = tables.filter((table) => !said.has('suite') || table.number === Number(said.get('suite')));
  if (said.has('case')) {
    for (const table of wanted) if (await table.show(said.get('case'))) return;
    return;
  }
  const change = {};
  for (const key of ['q', 'status', 'tag', 'complexity', 'criterion', 'sort']) if (said.has(key)) change[key] = said.get(key);
  if (change.sort && !Object.hasOwn(ORDERS, change.sort)) delete change.sort;
  if (!Object.keys(change).length) return;
  for (const table of wanted) table.set({ q: '', status: '', tag: '', complexity: '', criterion: '', ...change }, { silent: true });
  wanted[0]?.place.closest('section').scrollIntoView({ block: 'start', behavior: 'instant' });
};
addEventListener('hashchange', follow);
follow();

addEventListener('keydown', (event) => {
  if (event.key !== '/' || event.ctrlKey || event.metaKey || /^(INPUT|SELECT|TEXTAREA)$/.test(document.activeElement.tagName)) return;
  event.preventDefault();
  tables[0]?.search.focus();
});
