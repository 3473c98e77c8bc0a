// milliseconds: at rest so long; a rerun; until it begins (a busy server takes its time); since the last letter in a field that is gone
const REST = 120, LONGEST = 60000, OPENING = 20000, LOST = 1500;

function install() {
  const keys = { item: null, run: 0, queue: [], waiting: null, rest: 0, timer: 0 };
  const app = () => document.querySelector('[data-testid=stApp]');
  const running = () => { const a = app(); return !a || a.getAttribute('data-test-script-state') !== 'notRunning'; };
  const button = (key) => {
    for (const mark of document.querySelectorAll('[data-testid=stMain] button:not(:disabled) [aria-label^="Shortcut "]')) {
      const label = mark.getAttribute('aria-label').slice(9);
      if (key === 'ENTER' ? /\+ Enter$/.test(label) : label === key) return mark.closest('button');
    }
    return null;
  };
  const idle = () => {
    const now = performance.now();
    if (running()) {
      keys.rest = 0;
      if (keys.waiting) keys.waiting.began = true;
      return false;
    }
    if (!keys.rest) keys.rest = now;
    const w = keys.waiting;
    if (!w) return now - keys.rest >= REST;
    if (w.began || w.run !== keys.run) {
      if (now - Math.max(keys.rest, keys.moved || 0) < REST) return false;
      keys.waiting = null;
      return true;
    }
    if (now - w.since > OPENING) { keys.waiting = null; keys.queue = []; return true; }  // no rerun came
    return false;
  };
  const watch = () => {
    if (keys.timer) return;
    keys.timer = setInterval(() => {
      const free = idle();
      if (keys.waiting && performance.now() - keys.waiting.since > LONGEST) keys.queue = [];
      if (!free) return;
      const next = keys.queue.shift();
      if (next && next.item === keys.item) {
        const found = button(next.key);
        if (found) { wait(); found.click(); return; }
      }
      if (!keys.queue.length && !keys.waiting) { clearInterval(keys.timer); keys.timer = 0; }
    }, 20);
  };
  const wait = () => { keys.waiting = { run: keys.run, since: performance.now(), began: false }; keys.rest = 0; watch(); };
  const name = (e) => {
    if ((e.ctrlKey || e.metaKey) && !e.altKey && !e.shiftKey && e.key === 'Enter') return 'ENTER';
    if (e.ctrlKey || e.metaKey || e.altKey || e.shiftKey) return null;
    const digit = /^(?:Digit|Numpad)([0-9])$/.exec(e.code || '');
    if (digit) return digit[1];
    const letter = e.key.length === 1 ? e.key.toUpperCase() : '';
    return /^[0-9ABD-QS-Z]$/.test(letter) ? letter : null;
  };
  const typesIn = (at) => at && (/^(INPUT|TEXTAREA|SELECT)$/.test(at.tagName || '') || at.isContentEditable);
  const search = () => document.querySelector('.st-key-annotate-search input');
  const toResult = () => {  // when the results of the search that was just sent are drawn
    const { run } = keys, end = performance.now() + LONGEST;
    const timer = setInterval(() => {
      const field = search();
      if (performance.now() > end || (document.activeElement !== field && document.activeElement !== document.body)) { clearInterval(timer); return; }
      if (keys.run === run || running()) return;
      clearInterval(timer);
      const result = document.querySelector('.st-key-annotate-search .stButton button');
      if (result) result.focus();
    }, 50);
  };
  // `/` goes to the search, Enter in it to the first result, Escape from it to the form, and from a field of the form to the keys
  const moves = (e, at) => {
    if (e.ctrlKey || e.metaKey || e.altKey || e.isComposing) return false;
    const typing = typesIn(at), field = search();
    if (e.key === '/' && !typing && field) { field.focus(); field.select(); return true; }
    if (e.key === 'Enter' && field && at === field && field.value.trim()) { toResult(); return false; }
    if (e.key !== 'Escape' || !at.closest || !at.closest('.st-key-annotate-area')) return false;
    const inSearch = at.closest('.st-key-annotate-search');
    if (!typing && !inSearch) return false;
    const form = inSearch && document.querySelector('.st-key-annotate-area [data-testid=stColumn]');
    const first = form && (form.querySelector('input:not(:disabled), textarea:not(:disabled)') || form.querySelector('button'));
    if (first) first.focus(); else at.blur();
    return true;
  };
  window.addEventListener('pointerdown', () => { keys.typed = 0; }, true);
  window.addEventListener('keydown', (e) => {
    if (keys.item === null || !e.isTrusted) return;
    const at = e.composedPath()[0];
    const typing = typesIn(at);
    if (moves(e, at)) { keys.typed = 0; e.preventDefault(); e.stopImmediatePropagation(); return; }
    const key = name(e);
    if (typing) keys.typed = e.key.length === 1 && !e.ctrlKey && !e.metaKey ? performance.now() : 0;
    if (!key) return;
    if (typing && key !== 'ENTER') return;
    if (!typing && keys.typed && key !== 'ENTER' && performance.now() - keys.typed < LOST) {  // a rerun took the field away: a letter of a word
      keys.typed = performance.now();
      e.preventDefault();
      e.stopImmediatePropagation();
      return;
    }
    const busy = keys.waiting || keys.queue.length;
    if (typing && !busy) { wait(); return; }  // Streamlit takes over what was typed first
    if (!typing && !busy && !running() && !button(key)) return;
    e.preventDefault();
    e.stopImmediatePropagation();
    if (typing || e.repeat || keys.queue.length > 30) return;
    keys.queue.push({ key, item: keys.item });
    watch();
  }, true);
  window.addEventListener('click', (e) => {  // a mouse, or Enter on a button
    if (keys.item !== null && e.isTrusted && e.target.closest && e.target.closest('[data-testid=stMain] .stButton button')) wait();
  }, true);
  return keys;
}

function top(data) {
  const main = document.querySelector('[data-testid=stMain]');
  if (!main) return;
  main.scrollTo({ top: 0 });
  for (const column of main.querySelectorAll('.st-key-annotate-area [data-testid=stColumn]')) column.scrollTo({ top: 0 });
  const question = document.querySelector('.st-key-annotate-question');
  const low = question ? question.getBoundingClientRect().bottom - window.innerHeight * 0.6 : 0;
  if (low > 0) main.scrollTo({ top: question.getBoundingClientRect().top - 80 });
}

export default function({ data }) {
  if (!data) return;
  const keys = window.__ambiscopeKeys || (window.__ambiscopeKeys = install());
  const fresh = keys.shown !== data.item;
  if (keys.run !== data.run) { keys.run = data.run; keys.moved = performance.now(); }
  keys.item = keys.shown = data.item;
  if (fresh) for (const later of [0, 150, 400]) setTimeout(() => { if (keys.shown === data.item) top(data); }, later);
  if (data.place && keys.token !== data.token) {
    keys.token = data.token;
    const look = (tries) => {
      if (keys.token !== data.token) return;
      const place = document.querySelector('.st-key-' + CSS.escape(data.place));
      const field = place && (place.matches('input, textarea, button') ? place : place.querySelector('input, textarea, button'));
      if (!field) { if (tries > 0) setTimeout(() => look(tries - 1), 100); return; }
      const card = data.card && document.querySelector('.st-key-' + CSS.escape(data.card));
      if (!fresh) {
        place.scrollIntoView({ block: 'nearest' });
        if (card) card.scrollIntoView({ block: card.getBoundingClientRect().height < window.innerHeight - 160 ? 'nearest' : 'start' });
      }
      field.focus({ preventScroll: true });
    };
    look(20);
  }
  return () => { if (keys.item === data.item) { keys.item = null; keys.queue = []; } };
}
