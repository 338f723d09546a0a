(function () {
  "use strict";
  var figures = JSON.parse(document.getElementById("figures").textContent);
  var form = document.getElementById("wishes");
  var table = document.getElementById("meaning");

  // Returns a number above 0, or null. Spaces and commas between digits are allowed.
  function wish(name) {
    var input = form.elements[name];
    var text = input.value.replace(/[\s,_]/g, "");
    var value = Number(text);
    var good = text !== "" && isFinite(value) && value > 0;
    input.classList.toggle("bad", text !== "" && !good);
    return good ? value : null;
  }

  function shown(value) {
    if (value === null) return "\u2013";
    var size = Math.abs(value);
    if (size >= 99.95) return Math.round(value).toLocaleString("en");
    return value.toFixed(size >= 9.995 ? 1 : size === 0 ? 0 : 2);
  }

  function size(bytes) {
    if (bytes === null) return "\u2013";
    var units = ["bytes", "kB", "MB", "GB", "TB", "PB"];
    var unit = 0;
    for (; Math.abs(bytes) >= 1000 && unit < 5; ++unit) bytes /= 1000;
    return shown(bytes) + "\u202f" + units[unit];
  }

  function cell(row, kind, text) {
    var made = document.createElement(kind);
    made.textContent = text;
    row.appendChild(made);
  }

  function least(values) {
    values = values.filter(function (value) { return value !== null; });
    return values.length ? Math.min.apply(null, values) : null;
  }

  function show() {
    var images = wish("images"), megapixels = wish("megapixels"), store = wish("store"), link = wish("link");
    var wanted = wish("wanted"), processors = wish("processors"), gpu = wish("gpu");
    while (table.firstChild) table.removeChild(table.firstChild);
    var head = document.createElement("thead"), body = document.createElement("tbody");
    var names = document.createElement("tr");
    ["data set as", "set size", "saved", "storage delivers, images/s", "cores decode, images/s",
      "cores deliver in total, images/s", "share of images that training needs",
      "link delivers if the GPU decodes, images/s", "GPU time for decoding"].forEach(function (name) { cell(names, "th", name); });
    head.appendChild(names);
    var scale = megapixels === null ? null : megapixels * 1e6 / figures.pixels;
    function row(name, bytes, decode, ours, lossy, measuredGpu) {
      var speed = gpu === null ? measuredGpu : gpu;
      var line = document.createElement("tr");
      if (ours) line.className = "ours";
      var file = scale === null ? null : bytes * scale;
      var samples = scale === null ? null : figures.sampleBytes * scale;
      var feeds = file === null || store === null ? null : store * 1e6 / file;
      var decoded = decode === null || megapixels === null || processors === null
        ? null : decode / figures.threads * processors / megapixels;
      var carried = samples === null || link === null ? null : link * 1e9 / samples;
      var all = file === null ? null : least([feeds, decoded, carried]);
      cell(line, "th", name + (lossy ? " (lossy)" : ""));
      cell(line, "td", file === null || images === null ? "\u2013" : size(file * images));
      cell(line, "td", file === null || images === null ? "\u2013"
        : size((figures.suppliedBytes - bytes) * scale * images));
      cell(line, "td", shown(feeds));
      cell(line, "td", shown(decoded));
      cell(line, "td", shown(all));
      cell(line, "td", all === null || wanted === null ? "\u2013"
        : Math.min(100, Math.round(100 * all / wanted)) + "\u202f%");
      cell(line, "td", ours && file !== null && link !== null ? shown(link * 1e9 / file) : "\u2013");
      cell(line, "td", ours && speed !== null && wanted !== null && megapixels !== null
        ? (100 * wanted * megapixels / speed).toFixed(1) + "\u202f%" : "\u2013");
      body.appendChild(line);
    }
    row("raw samples", figures.sampleBytes, null, false, false, null);
    figures.codecs.forEach(function (codec) {
      row(codec.name, codec.bytes, codec.decode, codec.ours, codec.lossy, codec.gpu);
    });
    table.appendChild(head);
    table.appendChild(body);
  }

  // A table that is wider than the page scrolls in its box. Mark such boxes and let the keyboard reach them.
  function mark() {
    Array.prototype.forEach.call(document.querySelectorAll(".wide"), function (box) {
      var cut = box.scrollWidth > box.clientWidth + 1;
      box.classList.toggle("cut", cut);
      if (cut) box.tabIndex = 0; else box.removeAttribute("tabindex");
    });
  }

  form.addEventListener("input", function () { show(); mark(); });
  form.addEventListener("submit", function (event) { event.preventDefault(); });
  window.addEventListener("resize", mark);
  show();
  mark();
})();
