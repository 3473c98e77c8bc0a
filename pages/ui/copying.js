function copy(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const field = document.body.appendChild(document.createElement('textarea'));  // without TLS there is no clipboard object
  field.value = text;
  field.select();
  document.execCommand('copy');
  field.remove();
}

export default function({ data, parentElement }) {
  const button = parentElement.querySelector('button');
  const say = (label) => { button.textContent = label; button.setAttribute('aria-label', label + data.side); };
  if (button.textContent === 'Copy link') say('Copy link');
  button.onclick = async () => {
    await copy(location.origin + location.pathname + '?' + data.query);
    say('Link copied');
    setTimeout(() => say('Copy link'), 3000);
  };
}
