#include "page.h"

#include <algorithm>

#include "frontier.h"
#include "markup.h"
#include "page_parts.h"
#include "plot.h"

namespace bench {
namespace {

std::string tag(const std::string& name, const std::string& inside) {
  return "<" + name + ">" + inside + "</" + name + ">";
}

std::string speed_cell(const Speed& speed) {
  if (speed.median <= 0) return "<td>\u2013</td>";
  std::string cell = "<td>" + three_digits(speed.median);
  if (speed.rounds > 1) {
    cell += " <small>\u00b1" + fixed(50 * (speed.maximum - speed.minimum) / speed.median, 0) + "\u202f%</small>";
  }
  return cell + "</td>";
}

std::string lossless_cell(const CodecFigures& codec) {
  if (codec.lossy) {
    return "<td class=\"lossy\">lossy" + (codec.psnr > 0 ? ", " + fixed(codec.psnr, 1) + " dB" : std::string()) +
           "</td>";
  }
  if (!codec.lossless) return "<td class=\"wrong\">NO</td>";
  return codec.samples_only ? "<td>yes, samples</td>" : "<td>yes, everything</td>";
}

std::string table(const SetFigures& set, uint32_t threads) {
  const bool all = threads > 1;
  const bool gpu = std::any_of(set.codecs.begin(), set.codecs.end(),
                               [](const CodecFigures& codec) { return codec.decode_gpu.median > 0; });
  const bool memory = std::any_of(set.codecs.begin(), set.codecs.end(),
                                  [](const CodecFigures& codec) { return codec.memory.has_value(); });
  const std::string count = std::to_string(threads);
  std::string html =
      "<div class=\"wide\"><table><thead><tr><th>codec</th><th>size</th><th>bits/pixel</th>"
      "<th>encode</th><th>decode</th>";
  if (all) html += "<th>encode, " + count + " cores</th><th>decode, " + count + " cores</th>";
  if (gpu) html += "<th>decode, GPU</th>";
  if (memory) html += "<th>MB to encode</th><th>MB to decode</th>";
  html += "<th>lossless</th><th>frontier</th></tr></thead><tbody>";
  for (const CodecFigures& codec : set.codecs) {
    if (codec.files == 0) continue;
    const bool part = codec.files < set.files;
    html += std::string("<tr") + (is_ours(codec) ? " class=\"ours\"" : "") + "><th title=\"" + escaped(codec.title) +
            "\">" + codec.name;
    if (part) html += " <small>" + grouped(codec.files) + " of " + grouped(set.files) + " images</small>";
    html += "</th><td>" + fixed(codec.ratio(), 4) + "</td><td>" + three_digits(codec.bits_per_pixel()) + "</td>" +
            speed_cell(codec.encode) + speed_cell(codec.decode);
    if (all) html += speed_cell(codec.encode_all) + speed_cell(codec.decode_all);
    if (gpu) html += speed_cell(codec.decode_gpu);
    if (memory) {
      const auto cell = [](bool there, uint64_t bytes) {
        return "<td>" + (there ? three_digits(static_cast<double>(bytes) / 1e6) : std::string("\u2013")) + "</td>";
      };
      html += cell(codec.memory && !codec.decodes_only, codec.memory ? codec.memory->encode : 0);
      html += cell(codec.memory.has_value(), codec.memory ? codec.memory->decode : 0);
    }
    html += lossless_cell(codec) + "<td>";
    const bool decode = on_frontier(set, codec, Direction::decode);
    const bool encode = on_frontier(set, codec, Direction::encode);
    html += decode && encode ? "both" : decode ? "decode" : encode ? "encode" : "";
    html += "</td></tr>";
  }
  return html + "</tbody></table></div>";
}

// Lists the images that codecs could not store, with the reasons.
std::string left_out(const SetFigures& set) {
  std::string text;
  for (const CodecFigures& codec : set.codecs) {
    std::string reasons;
    for (const auto& [reason, files] : codec.not_held) {
      reasons += (reasons.empty() ? "" : ", ") + grouped(files) + " (" + escaped(reason) + ")";
    }
    if (!reasons.empty()) text += (text.empty() ? "" : "; ") + codec.name + ": " + reasons;
  }
  if (text.empty()) return "";
  return "<p class=\"note\">Some codecs cannot store all images. The figures of such a codec leave those images out, "
         "and its marks in the plots are hollow: " +
         text + ".</p>";
}

std::string plots(const SetFigures& set) {
  std::string html = "<div class=\"plots\">";
  for (const Direction direction : {Direction::decode, Direction::encode}) {
    html += "<figure><div class=\"desk\">" + trade_plot(set, direction, PlotSize::wide) +
            "</div><div class=\"phone\">" + trade_plot(set, direction, PlotSize::narrow) +
            "</div><figcaption>Size against " + (direction == Direction::decode ? "decoding" : "encoding") +
            " speed. Better codecs are further right and lower. The dashed line is the frontier: no lossless codec "
            "that holds all images is both smaller and faster than a codec on it.</figcaption></figure>";
  }
  return html + "</div>";
}

std::string head_line(const SetFigures& set) {
  return grouped(set.files) + (set.files == 1 ? " image, " : " images, ") +
         three_digits(static_cast<double>(set.pixels) / 1e6) + " MP, " + format_size(set.supplied_bytes) +
         " of source files, " + format_size(set.sample_bytes) + " of samples";
}

std::string training(const TrainingFigures& training) {
  std::string html = "<h2 id=\"training\">Loading for training, measured</h2><p>" + escaped(training.about) + ". " +
                     std::to_string(training.threads) + " threads, batches of " + std::to_string(training.batch) +
                     ". Stalled is the share of time that a training run waits for data if each step takes " +
                     three_digits(training.step_seconds * 1e3) + " ms.</p>";
  const double first = training.feeds.empty() ? 0 : training.feeds[0].warm;
  html +=
      "<div class=\"wide\"><table><thead><tr><th>data set as</th><th>size</th><th>images/s, in memory</th>"
      "<th>compared with the first</th><th>images/s, from disk</th><th>stalled</th></tr></thead><tbody>";
  for (const FeedFigures& feed : training.feeds) {
    const auto cell = [](double value) { return "<td>" + (value > 0 ? three_digits(value) : "\u2013") + "</td>"; };
    html += std::string("<tr") + (feed.name.starts_with("l3") ? " class=\"ours\"" : "") + "><th>" + escaped(feed.name) +
            (feed.lossy ? " <small>lossy</small>" : "") + "</th><td>" + format_size(feed.bytes) + "</td>" +
            cell(feed.warm) + "<td>" + (first > 0 ? three_digits(feed.warm / first) : "\u2013") + "</td>" +
            cell(feed.cold) + "<td>" + fixed(100 * feed.stalled, 0) + "\u202f%</td></tr>";
  }
  return html + "</tbody></table></div>";
}

// The figures that the script of the page uses.
std::string data_of(const Results& results) {
  const SetFigures& set = results.whole;
  std::string json = "{\"files\":" + std::to_string(set.files) + ",\"pixels\":" + std::to_string(set.pixels) +
                     ",\"sampleBytes\":" + std::to_string(set.sample_bytes) +
                     ",\"suppliedBytes\":" + std::to_string(set.supplied_bytes) +
                     ",\"threads\":" + std::to_string(results.threads) + ",\"codecs\":[";
  bool first = true;
  for (const CodecFigures& codec : set.codecs) {
    if (codec.files != set.files || codec.decodes_only) continue;
    const double decode = codec.decode_all.median > 0 ? codec.decode_all.median : codec.decode.median;
    json += std::string(first ? "" : ",") + "{\"name\":\"" + codec.name +
            "\",\"bytes\":" + std::to_string(codec.bytes) + ",\"decode\":" + fixed(decode, 3) +
            ",\"gpu\":" + (codec.decode_gpu.median > 0 ? fixed(codec.decode_gpu.median, 3) : std::string("null")) +
            ",\"ours\":" + (is_ours(codec) ? "true" : "false") + ",\"lossy\":" + (codec.lossy ? "true" : "false") + "}";
    first = false;
  }
  return json + "]}";
}

std::string input(const char* name, const char* label, const std::string& value) {
  return std::string("<label>") + label + " <input inputmode=\"decimal\" name=\"" + name + "\" value=\"" + value +
         "\"></label>";
}

std::string calculator(const Results& results) {
  const SetFigures& set = results.whole;
  const double megapixels =
      static_cast<double>(set.pixels) / 1e6 / static_cast<double>(std::max<uint64_t>(set.files, 1));
  const std::string threads = std::to_string(results.threads);
  return "<h2 id=\"means\">What it means for your training</h2>"
         "<p>Computed from the sizes and speeds above, for images like those measured. Change the figures in the boxes "
         "to your own.</p><form id=\"wishes\">" +
         input("images", "images in the data set", "1000000") +
         input("megapixels", "megapixels per image", three_digits(megapixels)) +
         input("store", "storage, MB/s", "500") + input("link", "link to the GPU, GB/s", "25") +
         input("wanted", "images/s that training needs", "1000") + input("processors", "cores for decoding", threads) +
         input("gpu", "GPU decoding speed, MP/s (measured by you)", "") +
         "</form><div class=\"wide\"><table id=\"meaning\"></table></div>"
         "<p class=\"note\">The storage delivers files. The decoding speed is the one measured here on " +
         threads + (results.threads == 1 ? " core" : " cores") +
         ", scaled to the number of cores. If the cores decode, the link carries samples; if a GPU decodes l3, it "
         "carries files. The GPU time for decoding uses the speed that you enter, or else the one measured here. "
         "Without either, the column stays empty.</p>"
         "<noscript><p class=\"note\">Only this table needs JavaScript.</p></noscript>";
}

std::string methods(const Results& results) {
  const Machine& machine = results.machine;
  std::string html =
      "<h2 id=\"how\">How it was measured</h2><pre>" + escaped(results.command) + "</pre><ul><li>" +
      escaped(machine.processor) + ", " + std::to_string(machine.processors) + " processors, " +
      escaped(machine.memory) + "; " + escaped(machine.system) + "; " + escaped(machine.compiler) + "; " +
      escaped(machine.library) + (machine.gpu.empty() ? std::string() : "; " + escaped(machine.gpu)) + "; " +
      escaped(machine.date) + ".</li>" +
      "<li>Size: the bytes of all files, divided by the bytes of the source files.</li>"
      "<li>MP/s: million pixels per second, between a file in memory and samples in memory. It is the median of "
      "several "
      "rounds, \u00b1 half the difference between the slowest and the fastest round. The codecs take turns in each "
      "round. On one core, time is the processor time of the thread. On several cores and on a GPU, it is wall-clock "
      "time. An encoder that takes more than 10 seconds for a batch (a fiftieth of --seconds) is timed only once.</li>"
      "<li>Every decoded image was compared with its source. <i>Everything</i>: samples, palette, transparency and all "
      "chunks are equal. <i>Samples</i>: only the samples are compared, and palette images as indices. Lossy codecs "
      "are listed for reference, with their error over all samples. They are never on the frontier.</li>";
  if (!results.memory_image.empty()) {
    html += "<li>Memory: how much the process grows while it encodes or decodes " + escaped(results.memory_image) +
            ".</li>";
  }
  if (results.whole.busy() >= kBusy) {
    html += "<li>The machine was busy: work on one core took " + fixed(results.whole.busy(), 1) +
            " times its processor time. The speeds that use wall-clock time are too low.</li>";
  }
  if (results.sampled) {
    html += "<li>There was not enough time for all images: " + grouped(results.whole.files) + " of " +
            grouped(results.listed_files) +
            " were measured. Each run picks images in the same order and skips those that would take too long.</li>";
  }
  if (results.failed > 0) {
    html += "<li>" + grouped(results.failed) + (results.failed == 1 ? " file" : " files") +
            " could not be read, or failed. The benchmark printed the names.</li>";
  }
  html +=
      "</ul><div "
      "class=\"wide\"><table><thead><tr><th>codec</th><th>description</th><th>library</th></tr></thead><tbody>";
  for (const CodecFigures& codec : results.whole.codecs) {
    html += "<tr><th>" + codec.name + "</th><td>" + escaped(codec.title) + "</td><td>" +
            escaped(codec.absent.empty()    ? codec.version
                    : codec.package.empty() ? "absent: " + codec.absent
                                            : "absent: " + codec.absent + " (Debian: " + codec.package + ")") +
            "</td></tr>";
  }
  return html + "</tbody></table></div>";
}

// The last part of a path.
std::string last_name(std::string path) {
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  const size_t slash = path.rfind('/');
  const std::string name = slash == path.npos || path.size() == 1 ? path : path.substr(slash + 1);
  return name == "." || name == ".." ? path : name;
}

std::string anchor(size_t number) { return "category-" + std::to_string(number + 1); }

}  // namespace

std::string html_page(const Results& results) {
  const std::string title = "Image codecs on " + escaped(last_name(results.folder));
  std::string html =
      "<!DOCTYPE html><html lang=\"en\"><head><meta charset=\"utf-8\">"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">"
      "<meta name=\"color-scheme\" content=\"light dark\"><title>" +
      title + "</title><style>" + plot_style() + kPageStyle + "</style></head><body><header><h1>" + title + "</h1><p>" +
      head_line(results.whole) + ". " + escaped(results.machine.date) + ", " + escaped(results.machine.library) +
      ".</p></header><main>";
  html += "<nav>";
  html += "<a href=\"#all\">all images</a>";
  for (size_t i = 0; i < results.categories.size(); ++i) {
    html += "<a href=\"#" + anchor(i) + "\">" + escaped(results.categories[i].name) + "</a>";
  }
  if (results.training) html += "<a href=\"#training\">training</a>";
  html += "<a href=\"#means\">your training</a><a href=\"#how\">how</a></nav><ul class=\"short\">";
  for (const std::string& line : conclusions(results)) html += tag("li", escaped(line));
  html += "</ul><section><h2 id=\"all\">All images</h2>" + plots(results.whole) +
          table(results.whole, results.threads) + left_out(results.whole) + "</section>";
  if (!results.categories.empty()) {
    html +=
        "<section><h2 id=\"sizes\">Sizes by category</h2><p>Size divided by the size of the source files. The line "
        "marks 1. Codecs that cannot store all of the images are hollow.</p><div class=\"bars\">";
    for (const SetFigures& set : results.categories) {
      html += "<figure><figcaption>" + escaped(set.name) + "</figcaption>" + size_bars(set) + "</figure>";
    }
    html += "</div></section>";
  }
  for (size_t i = 0; i < results.categories.size(); ++i) {
    const SetFigures& set = results.categories[i];
    html += "<section><h2 id=\"" + anchor(i) + "\">" + escaped(set.name) + "</h2><p>" + head_line(set) + ".</p>" +
            plots(set) + table(set, results.threads) + left_out(set) + "</section>";
  }
  if (results.training) html += "<section>" + training(*results.training) + "</section>";
  html += "<section>" + calculator(results) + "</section><section>" + methods(results) + "</section></main>";
  html += "<script type=\"application/json\" id=\"figures\">" + data_of(results) + "</script><script>" +
          std::string(kPageScript) + "</script></body></html>\n";
  return html;
}

}  // namespace bench
