// guess_text_options(): the format that all lines have, or else most of them.
#include <algorithm>

#include "flux/data/criteo.h"
#include "flux/data/tools/guess_text.h"

namespace flux {
namespace {

using Guess = std::optional<DataOptions> (*)(Lines lines);

struct KnownFormat {
  Guess guess;
  size_t header = 0;  // lines that are no record
};

std::optional<DataOptions> guess_criteo(Lines lines) {
  const bool fits = std::all_of(lines.begin(), lines.end(), [](const std::string& line) {
    return std::count(line.begin(), line.end(), '\t') == kCriteoFields - 1;
  });
  return fits ? std::optional(DataOptions()) : std::nullopt;
}

// The most particular first.
constexpr KnownFormat kKnown[] = {{guess_criteo},    {guess_vw},     {guess_libffm}, {guess_libsvm},
                                  {guess_multislot}, {guess_csv, 1}, {guess_feasign}};

// Which of the lines go together in one format. A few that do are held against the others, piece by
// piece, and a piece that does not fit is halved.
class Matching {
 public:
  Matching(const KnownFormat& format, Lines lines) : format_(format), lines_(lines) {}

  // From line `first` on; false: most do not fit.
  bool find(size_t first) {
    anchor_.assign(lines_.begin(), lines_.begin() + static_cast<ptrdiff_t>(format_.header));
    fitting_ = anchor_;
    misfits_ = first - format_.header;
    for (size_t at = first; at < lines_.size() && !hopeless(); at += kPiece)
      take(at, std::min(at + kPiece, lines_.size()));
    return fitting() > misfits_ && !hopeless();
  }
  size_t fitting() const { return fitting_.size() - format_.header; }
  std::optional<DataOptions> options() const { return format_.guess(fitting_); }

 private:
  static constexpr size_t kPiece = 256;
  static constexpr size_t kAnchor = 4;
  static constexpr size_t kMisfits = 100;  // more than fit so far: no reason to give up yet

  bool hopeless() const { return misfits_ > fitting() + kMisfits; }
  void take(size_t first, size_t end) {
    std::vector<std::string> tried = anchor_;
    tried.insert(tried.end(), lines_.begin() + static_cast<ptrdiff_t>(first),
                 lines_.begin() + static_cast<ptrdiff_t>(end));
    if (format_.guess(tried)) {
      fitting_.insert(fitting_.end(), tried.begin() + static_cast<ptrdiff_t>(anchor_.size()),
                      tried.end());
      tried.resize(std::min(tried.size(), std::max(kAnchor, anchor_.size())));
      anchor_ = std::move(tried);
    } else if (end - first == 1) {
      ++misfits_;
    } else {
      const size_t middle = first + (end - first) / 2;
      take(first, middle);
      if (!hopeless()) take(middle, end);
    }
  }

  const KnownFormat format_;
  const Lines lines_;
  std::vector<std::string> anchor_, fitting_;
  size_t misfits_ = 0;
};

// A first line that is wrong may make all others look so.
constexpr size_t kBegins = 3;

}  // namespace

std::optional<DataOptions> guess_text_options(Lines lines) {
  for (const KnownFormat& format : kKnown)
    if (auto options = format.guess(lines)) return options;
  std::optional<DataOptions> best;
  size_t most = 0;
  for (const KnownFormat& format : kKnown) {
    for (size_t skip = 0; skip < kBegins && format.header + skip < lines.size(); ++skip) {
      Matching matching(format, lines);
      if (!matching.find(format.header + skip) || matching.fitting() <= most) continue;
      if (auto options = matching.options()) {
        best = std::move(options);
        most = matching.fitting();
        break;
      }
    }
  }
  return best;
}

}  // namespace flux
