// l3 show: draws an image in a terminal.
#include <poll.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/parallel.h"
#include "bridge/image_bridge.h"
#include "conversion.h"
#include "data_sets.h"
#include "draw.h"
#include "file_io.h"
#include "formats/formats.h"
#include "model_files.h"
#include "options.h"
#include "picture.h"
#include "terminal.h"

namespace tools {
namespace {

constexpr uint32_t kMostColumns = 10000;

struct ShowOptions {
  std::string in, name;
  std::string as = "auto";
  uint32_t width = 0;
  bool stretch = false;
  std::vector<std::string> models;
  l3_limits limits{};
};

// The terminal while a picture is drawn. If a signal ends the process meanwhile, the picture is ended first, so that
// the terminal shows text again.
class Screen {
 public:
  Screen(Protocol protocol, Context& context)
      : protocol_(protocol), context_(context), cleanup_(context.unfinished.add_cleanup([this] { end(); })) {}
  ~Screen() {
    is_over_ = true;
    context_.unfinished.clean_up(cleanup_);
  }
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  bool put(std::string_view text) {
    const std::lock_guard lock(writing_);
    const std::span bytes(reinterpret_cast<const uint8_t*>(text.data()), text.size());
    failure_ = write_file("-", bytes, Flush::none, context_.unfinished);
    return !failure_;
  }
  const std::optional<Failure>& failure() const { return failure_; }

 private:
  void end() {
    if (is_over_) return;
    // It stays locked: nothing may follow the end. But a terminal that reads nothing must not keep the process alive.
    (void)writing_.try_lock_for(std::chrono::milliseconds(200));
    const std::string_view text = ending(protocol_);
    pollfd poll_for{STDOUT_FILENO, POLLOUT, 0};
    if (poll(&poll_for, 1, 0) == 1 && (poll_for.revents & POLLOUT) != 0) {
      [[maybe_unused]] const ssize_t count = write(STDOUT_FILENO, text.data(), text.size());
    }
  }

  const Protocol protocol_;
  Context& context_;
  std::timed_mutex writing_;
  std::atomic<bool> is_over_ = false;
  std::optional<Failure> failure_;
  const uint64_t cleanup_;
};

struct File {
  std::string name;  // in messages
  bridge::Buffer bytes;
};

Outcome<File> read(const ShowOptions& options) {
  if (options.name.empty()) {
    Outcome<bridge::Buffer> bytes = read_file(options.in);
    if (!bytes) return bytes.failure();
    return File{display_name(options.in, "stdin"), std::move(*bytes)};
  }
  const Outcome<l3::DataSet> set = open_data_set(options.in);
  if (!set) return set.failure();
  const Outcome<uint64_t> index = find_sample(*set, options.in, options.name);
  if (!index) return index.failure();
  Outcome<bridge::Buffer> bytes = read_with_model(*set, *index);
  if (!bytes) return bytes.failure();
  return File{display_name(*set, set->sample(*index)), std::move(*bytes)};
}

// An image that can be shown. With a warning it is shown, too, but the exit code is 1.
struct Seen {
  formats::Image image;
  std::optional<Failure> warning;
};

Outcome<Seen> see(const File& file, const ShowOptions& options) {
  Seen seen;
  bool is_premultiplied = false;
  if (is_l3(file.bytes.bytes())) {
    ModelFiles models;
    if (const auto failure = models.open(options.models)) return *failure;
    base::Parallel parallel(0);
    const l3_decode_options decoding = decode_options(options.limits, models.all(), parallel.for_l3());
    const l3::Result<l3::File> opened = l3::File::open(file.bytes.bytes(), decoding);
    if (!opened) return failure_in(file.name, bridge::to_error(opened.error()));
    std::optional<formats::Error> damage;
    if (const auto error = bridge::decode_l3(*opened, {}, seen.image, &damage)) return failure_in(file.name, *error);
    if (damage) seen.warning = failure_in(file.name, *damage);
    is_premultiplied = opened->info().alpha == L3_ALPHA_PREMULTIPLIED;
  } else {
    formats::ReadOptions reading = read_options(options.limits);
    reading.page = 1;
    formats::Result<formats::Image> image = formats::read(file.bytes.bytes(), reading);
    if (!image) return failure_in(file.name, image.error());
    seen.image = std::move(*image);
  }
  make_visible(seen.image, options.stretch, is_premultiplied);
  return seen;
}

int show_file(const ShowOptions& options, Context& context) {
  Console& console = context.console;
  if (options.as == "auto" && !console.stdout_is_terminal()) {
    return wrong_usage(context, "show: stdout is not a terminal; to write to a file or a pipe, say how: --as blocks");
  }
  if (options.name.empty() && options.in != "-" && is_data_set(options.in)) {
    return wrong_usage(context, "show: " + path_text(options.in) +
                                    " is a data set; name one of its samples, too (l3 ls prints the names)");
  }
  const Outcome<File> file = read(options);
  if (!file) {
    console.fail(file.failure());
    return kExitFailed;
  }
  Outcome<Seen> seen = see(*file, options);
  if (!seen) {
    console.fail(seen.failure());
    return kExitFailed;
  }
  const Protocol protocol = options.as == "kitty"    ? Protocol::kitty
                            : options.as == "sixel"  ? Protocol::sixel
                            : options.as == "blocks" ? Protocol::blocks
                                                     : protocol_of_terminal(context);
  const loader::Size room = room_of_terminal(protocol, options.width);
  if (const auto failure = fit(file->name, room, options.limits, seen->image)) {
    console.fail(*failure);
    return kExitFailed;
  }
  const OpaqueImage picture = on_checkerboard(seen->image);
  {
    Screen screen(protocol, context);
    const Put put = [&](std::string_view text) { return screen.put(text); };
    switch (protocol) {
      case Protocol::kitty: draw_kitty(picture, put); break;
      case Protocol::sixel: draw_sixel(picture, put); break;
      default: draw_blocks(picture, has_true_colour(), put); break;
    }
    if (!seen->warning) seen->warning = screen.failure();
  }
  if (!seen->warning) return kExitDone;
  console.fail(*seen->warning);
  return kExitFailed;
}

int show(const ShowOptions& options, Context& context) try { return show_file(options, context); } catch (...) {
  context.console.fail(caught(path_text(display_name(options.in, "stdin"))));
  return kExitFailed;
}

}  // namespace

void add_show(CommandLine& line) {
  Subcommand sub = line.command("show", "Show an image in the terminal");
  auto options = std::make_shared<ShowOptions>();
  sub.option("IN", options->in, "An L3 file or another image, - for stdin; or a data set or a shard, if NAME follows")
      .required()
      .type("");
  sub.option("NAME", options->name, "The name of a sample of the data set, as l3 ls prints it").type("");
  sub.option("--as", options->as, "How to draw (default: auto, the best that the terminal understands)")
      .one_of({"auto", "kitty", "sixel", "blocks"})
      .details(
          "kitty: the pixels themselves. sixel: at most 256 colours. blocks: a character for each two pixels, in any "
          "terminal with UTF-8; with 256 colours unless COLORTERM is truecolor. Without a terminal, auto is refused");
  sub.option("--width", options->width, "Columns that the picture may have (default: all; it must fit the terminal)")
      .type("COLUMNS")
      .whole_between(1, kMostColumns)
      .details("With this option the picture may be higher than the terminal");
  sub.flag("--stretch", options->stretch, "Show the least sample as black and the greatest as white, for depth maps")
      .details("Above 8 bits, 0 counts as \"no value\" and stays black. The colours of a palette stay as they are");
  add_models(sub, options->models, "A model from l3 train that the file needs")
      .details("Give the option again for another model");
  add_limits(sub, options->limits, true);
  sub.examples(
      "  l3 show photo.l3\n"
      "  l3 show --stretch depth.l3                    from black to white\n"
      "  l3 show set/ n01440764/7.png                  a sample of a data set\n"
      "  l3 show --as blocks photo.l3 | less -R        in a pipe\n");
  sub.footer(
      "The picture fits the terminal and is never enlarged. It is turned upright as its EXIF says. Transparent pixels\n"
      "show a checkerboard. Of a file with several pages or frames the first one is shown.\n");
  sub.manual(
      "Terminals are recognised by KITTY_WINDOW_ID, TERM and TERM_PROGRAM. Others are asked what they understand. A\n"
      "terminal that does not answer within half a second gets blocks. Colour profiles are not applied.\n");
  sub.run([options](Context& context) { return show(*options, context); });
}

}  // namespace tools
