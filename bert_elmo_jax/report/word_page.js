// The page of one sentence: a word that is pointed at, tapped or focused shows its attention, neighbours and guesses.
"use strict";
const page = JSON.parse(document.getElementById("data").textContent);
const state = { language: page.language, model: 0, layer: -1, head: 0, word: page.word, pinned: false };
// The text of a name; its {} are the values in order, or by number.
function say(name, ...values) {
  const fill = (text, value, n) => text.replace(text.includes(`{${n}}`) ? `{${n}}` : "{}", () => value);
  return values.reduce(fill, page.texts[state.language][name]);
}
const root = document.getElementById("words");

// Texts of models and users become text nodes, never HTML.
function add(parent, tag, text, attributes = {}) {
  const element = document.createElement(tag);
  if (text !== undefined) element.textContent = text;
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  return parent.appendChild(element);
}

function choose(parent, label, names, chosen, change) {
  const box = add(add(parent, "label", label + " "), "select");
  names.forEach((name, n) => add(box, "option", name, { value: n }));
  box.value = chosen;
  box.onchange = () => { change(Number(box.value)); draw(); };
  return box;
}

// The weights of the chosen word in the chosen layer, in one head or as the mean of all.
function weigh(model) {
  const place = model.places[state.word], heads = model.maps && model.maps[state.layer - 1];
  if (!heads || place === null) return null;
  if (state.head) return heads[state.head - 1][place];
  return heads[0][place].map((_, n) => heads.reduce((sum, head) => sum + head[place][n], 0) / heads.length);
}

function drawWords(model) {
  const list = document.getElementById("sentence"), weights = weigh(model);
  const most = weights ? Math.max(...weights, 1) : 1;
  model.shown.forEach((name, place) => {
    const word = model.places.indexOf(place), box = list.children[place] || add(list, "li");
    if (!box.firstChild) {
      const button = add(box, word < 0 ? "span" : "button", undefined, { lang: page.of_sentence, class: "word" });
      add(add(box, "div", undefined, { class: "bar" }), "div");
      add(box, "span", undefined, { class: "number" });
      if (word >= 0) {
        const show = () => { if (state.word !== word) { state.word = word; draw(); } };
        button.onclick = () => { state.pinned = !(state.pinned && state.word === word); state.word = word; draw(); };
        button.onfocus = () => { if (!state.pinned) show(); };
        button.onpointerenter = event => { if (event.pointerType === "mouse" && !state.pinned) show(); };
      }
    }
    const [button, bar, number] = box.children;
    button.textContent = name;
    if (word >= 0) button.setAttribute("aria-pressed", word === state.word);
    bar.firstChild.style.height = weights ? `${Math.max(100 * weights[place] / most, weights[place] >= 5 ? 6 : 0)}%` : "0";
    number.textContent = weights ? (weights[place] / 1000).toFixed(2) : "";
  });
}

function drawLinks(model, parent) {
  const from = model.places[state.word], links = [];
  model.maps.forEach((heads, layer) => heads.forEach((rows, head) => model.places.forEach((place, word) => {
    if (place !== null && place !== from && /[\p{L}\p{N}]/u.test(model.words[word])) links.push([rows[from][place], layer, head, word]);
  })));
  add(parent, "h2", say("links", model.words[state.word]));
  const list = add(parent, "ul", undefined, { class: "links" });
  for (const [weight, layer, head, word] of links.sort((a, b) => b[0] - a[0]).slice(0, 6)) {
    const text = say("link", model.words[word], layer + 1, head + 1, (weight / 1000).toFixed(2));
    add(add(list, "li"), "button", text).onclick = () => {
      Object.assign(state, { layer: layer + 1, head: head + 1, pinned: true });
      draw();
    };
  }
}

function drawPanels(model) {
  const parent = document.getElementById("panels"), word = model.words[state.word];
  parent.replaceChildren();
  const guesses = model.guesses && model.guesses[state.word];
  if (guesses && guesses.length) {
    const box = add(parent, "section");
    add(box, "h2", say(model.guessed, word));
    const list = add(box, "ol", undefined, { class: "guesses" });
    for (const [piece, chance] of guesses) {
      const line = add(list, "li");
      add(line, "span", piece, { lang: page.of_sentence });
      add(add(line, "div", undefined, { class: "share" }), "div").style.width = `${100 * chance}%`;
      add(line, "span", chance.toFixed(2));
    }
  }
  const box = add(parent, "section");
  add(box, "h2", say("near", word, state.layer));
  const list = add(box, "ol");
  for (const [cosine, number, place] of (model.near[state.layer] || [])[state.word] || []) {
    const line = add(list, "li", `${cosine.toFixed(2)} `), quote = add(line, "q", undefined, { lang: page.of_sentence });
    page.sentences[number].forEach((other, n) => {
      if (n) quote.append(" ");
      add(quote, n === place ? "b" : "span", other);
    });
  }
  if (model.maps && model.places[state.word] !== null) drawLinks(model, add(parent, "section"));
}

function drawControls(model) {
  const parent = document.getElementById("controls"), active = document.activeElement, layers = Object.keys(model.near);
  const focused = [...parent.querySelectorAll("select, button")].indexOf(active);
  parent.replaceChildren();
  if (page.models.length > 1) {
    choose(parent, say("model"), page.models.map(each => each.name), state.model, n => { state.model = n; fit(); });
  }
  choose(parent, say("layer"), layers, layers.indexOf(String(state.layer)), n => { state.layer = Number(layers[n]); });
  if (model.maps) {
    const heads = model.maps[0].map((_, n) => String(n + 1));
    choose(parent, say("head"), [say("mean"), ...heads], state.head, n => { state.head = n; });
  }
  const button = add(parent, "button", say("other"), { lang: say("other_code") });
  button.onclick = () => { state.language = say("other_code"); draw(); };
  if (focused >= 0) parent.querySelectorAll("select, button")[focused]?.focus();
}

// The last layer at first; another model may have fewer layers and heads.
function fit() {
  const model = page.models[state.model], layers = Object.keys(model.near).map(Number);
  if (!layers.includes(state.layer)) state.layer = layers[layers.length - 1];
  if (!model.maps || state.head > model.maps[0].length) state.head = 0;
  document.getElementById("sentence").replaceChildren();
}

function draw() {
  const model = page.models[state.model];
  document.documentElement.lang = state.language;
  document.getElementById("how").textContent = say("how");
  const note = !model.maps ? "no_maps" : state.layer === 0 ? "embeddings" : "attends";
  document.getElementById("note").textContent = say(note, model.words[state.word]);
  drawControls(model);
  drawWords(model);
  drawPanels(model);
}

document.onkeydown = event => {
  const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  if (event.key === "Escape") { state.pinned = false; draw(); }
  if (!step || !document.activeElement.classList.contains("word")) return;
  const buttons = [...document.querySelectorAll("button.word")];
  buttons[buttons.indexOf(document.activeElement) + step]?.focus();
};
root.hidden = false;
fit();
draw();
