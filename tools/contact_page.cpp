// The page of l3 info --html.
#include <algorithm>
#include <array>
#include <cstdio>
#include <string>

#include "base/escape.h"
#include "base/hex.h"
#include "contact_sheet.h"
#include "progress.h"

namespace tools {
namespace {

using base::escaped;

constexpr std::string_view kStyle = R"css(
:root{color-scheme:light dark;--ink:#1d2430;--soft:#5b6675;--rule:#d7dde4;--ground:#fff;--raised:#f5f7f9;--wrong:#b00020}
@media(prefers-color-scheme:dark){
:root{--ink:#e4e8ee;--soft:#a3adba;--rule:#2c3440;--ground:#14181f;--raised:#1b212a;--wrong:#ff7b8a}
}
*{box-sizing:border-box}
body{margin:0 auto;max-width:1400px;padding:20px;background:var(--ground);color:var(--ink);
font:15px/1.45 system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif}
h1{font-size:1.5rem;line-height:1.2;margin:0 0 4px;overflow-wrap:anywhere}
p{margin:0;color:var(--soft)}
#tiles{margin:0 6px 0 0;width:16px;height:16px;vertical-align:-2px}
.bar{position:sticky;top:0;z-index:2;display:flex;flex-wrap:wrap;align-items:center;gap:2px 16px;margin:14px 0;
padding:8px 0;background:var(--ground);border-bottom:1px solid var(--rule);font-size:.9rem}
.bar label{cursor:pointer;padding:2px 0}
.bar span{white-space:nowrap;color:var(--soft);visibility:hidden}
body:has(#tiles:checked) .bar span{visibility:visible}
.bar i{display:inline-block;width:12px;height:12px;margin-right:5px;vertical-align:-1px;border:1px solid #0005}
main{display:grid;grid-template-columns:repeat(auto-fill,minmax(228px,1fr));gap:16px}
figure{margin:0;padding:9px;background:var(--raised);border:1px solid var(--rule);border-radius:6px;min-width:0}
.room{display:flex;height:192px;align-items:center;justify-content:center}
.picture{position:relative;line-height:0}
img{display:block;max-width:100%}
img.large{image-rendering:pixelated}
img.tiles{position:absolute;inset:0;display:none}
body:has(#tiles:checked) img.tiles{display:block}
figcaption{margin-top:8px;font-size:.82rem;color:var(--soft);overflow-wrap:anywhere}
figcaption b{display:-webkit-box;-webkit-box-orient:vertical;-webkit-line-clamp:3;overflow:hidden;color:var(--ink);
font-size:.88rem;font-weight:600}
figcaption div{margin-top:1px}
.wrong{color:var(--wrong)}
@media print{.bar{position:static}figure{break-inside:avoid}}
)css";

std::string image_tag(const std::vector<uint8_t>& png, const Card& card, const std::string& kind,
                      const std::string& text) {
  return "<img class=\"" + kind + "\" width=\"" + std::to_string(card.shown_width) + "\" height=\"" +
         std::to_string(card.shown_height) + "\" alt=\"" + text + "\" src=\"data:image/png;base64," +
         base::base64(png) + "\">";
}

std::string tiles_text(const Card& card) {
  std::string text;
  for (size_t kind = 0; kind < kTileKinds.size(); ++kind) {
    if (card.tiles[kind] == 0) continue;
    text += (text.empty() ? "" : "; ") + std::to_string(card.tiles[kind]) + " " + std::string(kTileKinds[kind]);
  }
  return text;
}

std::string bits_a_pixel(uint64_t bytes, uint64_t pixels) {
  return format_number(8 * static_cast<double>(bytes) / static_cast<double>(pixels), 2) + " bits a pixel";
}

void add_card(const Card& card, std::string& html) {
  const std::string name = escaped(card.name);
  html += "<figure>\n<div class=\"room\">";
  if (!card.picture.empty()) {
    html += "<div class=\"picture\">" + image_tag(card.picture, card, "large", name) +
            image_tag(card.tile_picture, card, "tiles", "") + "</div>";
  }
  html += "</div>\n<figcaption><b title=\"" + name + "\">" + name + "</b>\n";
  const auto line = [&](const std::string& text) { html += "<div>" + escaped(text) + "</div>\n"; };
  if (!card.label.empty()) line("label " + card.label);
  if (!card.group.empty()) line("group " + card.group);
  if (card.width > 0) {
    line(std::to_string(card.width) + " x " + std::to_string(card.height) + ", " + card.layout +
         (card.is_stretched ? ", brightened" : ""));
    line(std::to_string(card.bytes) + " bytes");
    line(bits_a_pixel(card.bytes, uint64_t{card.width} * card.height));
    line("tiles: " + tiles_text(card));
  }
  if (!card.model.empty()) line("model " + card.model);
  if (!card.failure.empty()) html += "<div class=\"wrong\">" + escaped(card.failure) + "</div>\n";
  html += "</figcaption>\n</figure>\n";
}

std::string summary(const SheetPage& page) {
  const uint64_t shown = page.cards.size();
  uint64_t bytes = 0, pixels = 0;
  for (const Card& card : page.cards) {
    if (card.width == 0) continue;
    bytes += card.bytes;
    pixels += uint64_t{card.width} * card.height;
  }
  std::string text = std::to_string(shown) + (shown == 1 ? " image" : " images");
  if (pixels > 0) text += ", " + format_bytes(bytes) + ", " + bits_a_pixel(bytes, pixels);
  text += ".";
  if (shown < page.images) {
    text += " " + std::to_string(page.images - shown) + " of " + std::to_string(page.images) +
            " images were left out; those below are spread over all of them. --images N shows more.";
  }
  if (page.others > 0) {
    text += " " + std::to_string(page.others) + (page.others == 1 ? " sample is" : " samples are") + " not an image.";
  }
  return text;
}

}  // namespace

std::string sheet_html(const SheetPage& page) {
  std::string html =
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      // Whatever a name contains, a browser loads nothing and runs nothing.
      "<meta http-equiv=\"Content-Security-Policy\" "
      "content=\"default-src 'none'; img-src data:; style-src 'unsafe-inline'\">\n<title>";
  html += escaped(page.title) + " - l3</title>\n<style>" + std::string(kStyle) + "</style>\n</head>\n<body>\n";
  html += "<h1>" + escaped(page.title) + "</h1>\n<p>" + escaped(summary(page)) + "</p>\n";
  html += "<div class=\"bar\"><label><input type=\"checkbox\" id=\"tiles\">Show how tiles are stored</label>\n";
  for (size_t kind = 0; kind < kTileKinds.size(); ++kind) {
    if (std::ranges::none_of(page.cards, [&](const Card& card) { return card.tiles[kind] > 0; })) continue;
    html += "<span><i style=\"background:#" + base::hexadecimal(kTileColours[kind]) + "\"></i>" +
            std::string(kTileKinds[kind]) + "</span>\n";
  }
  html += "</div>\n<main>\n";
  for (const Card& card : page.cards) add_card(card, html);
  return html + "</main>\n</body>\n</html>\n";
}

}  // namespace tools
