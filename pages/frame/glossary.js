export default function() {
  if (window.__ambiscopeSheet) return;
  window.__ambiscopeSheet = true;
  window.addEventListener('keydown', (e) => {
    if (e.key !== '?' || e.ctrlKey || e.metaKey || e.altKey || !e.isTrusted) return;
    const target = e.composedPath()[0];
    if (target && (/^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName || '') || target.isContentEditable)) return;
    const button = document.querySelector('.st-key-guide-sheet button');
    if (button && !document.querySelector('[role=dialog]')) { e.preventDefault(); button.click(); }
  });
}
