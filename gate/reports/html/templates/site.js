// The table of cases: only rows that hold what is looked for, and only flaky ones if so wished.
const search = document.getElementById('search');
const flaky = document.getElementById('flaky');
const shown = document.getElementById('shown');
const rows = [...document.querySelectorAll('#table-cases tbody tr')];
const sift = () => {
  const wanted = search.value.trim().toLowerCase();
  let left = 0;
  for (const row of rows) {
    row.hidden = (flaky.checked && row.cells[3].textContent !== 'flaky') || !row.textContent.toLowerCase().includes(wanted);
    left += row.hidden ? 0 : 1;
  }
  shown.textContent = `${left} of ${rows.length} shown`;
};
if (search) {
  document.getElementById('tools').hidden = false;
  search.addEventListener('input', sift);
  flaky.addEventListener('change', sift);
  sift();
}
