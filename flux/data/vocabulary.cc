#include "flux/data/vocabulary.h"

#include <algorithm>
#include <charconv>
#include <functional>
#include <unordered_map>
#include <unordered_set>

#include "flux/base/buffer.h"
#include "flux/base/parallel.h"
#include "flux/base/text.h"
#include "flux/data/line_error.h"
#include "flux/data/lines.h"
#include "flux/data/plain_text.h"
#include "flux/data/sources/first_bytes.h"
#include "flux/data/sources/text_stream.h"
#include "flux/storage/read_file.h"

namespace flux {
namespace {

constexpr size_t kChunkBytes = 1 << 20;
constexpr size_t kWordBytesMax = 1 << 16;
constexpr size_t kLineBytesMax = kWordBytesMax + 64;  // of a vocabulary: a word and its count

struct WordHash {
  using is_transparent = void;
  size_t operator()(std::string_view word) const { return hash_bytes(word); }
};
using Counts = std::unordered_map<std::string, uint64_t, WordHash, std::equal_to<>>;

// Takes text in pieces; a word may be cut by their border.
class WordCounter {
 public:
  explicit WordCounter(const std::string& path) : path_(path) {}
  Status add(std::string_view text) {
    size_t at = 0;
    while (at < text.size()) {
      const size_t begin = at;
      while (at < text.size() && !parts_words(text[at])) ++at;
      cut_ += text.substr(begin, at - begin);
      if (cut_.size() > kWordBytesMax)
        return invalid("{}:{}: a word is longer than {} bytes; is this text?", path_, line_,
                       kWordBytesMax);
      if (at == text.size()) break;
      FLUX_RETURN_IF_ERROR(end_word());
      for (; at < text.size() && parts_words(text[at]); ++at) line_ += text[at] == '\n' ? 1 : 0;
    }
    return Status::ok();
  }
  Result<Counts> finish() {
    FLUX_RETURN_IF_ERROR(end_word());
    return std::move(counts_);
  }

 private:
  Status end_word() {
    if (cut_.empty()) return Status::ok();
    const auto found = counts_.find(std::string_view(cut_));
    if (found != counts_.end()) {
      ++found->second;
    } else {
      if (const auto wrong = find_no_text(cut_))
        return invalid("{}:{}: in {}: {}", path_, line_, shown_field(cut_), wrong->what);
      counts_.emplace(cut_, 1);
    }
    cut_.clear();
    return Status::ok();
  }
  const std::string& path_;
  uint64_t line_ = 1;
  Counts counts_;
  std::string cut_;  // the word so far
};

// All text of a file, plain or packed, in pieces.
Status read_text(const std::string& path, const std::function<Status(std::string_view)>& take) {
  FLUX_ASSIGN_OR_RETURN(const ReadFile file, ReadFile::open(path));
  FLUX_ASSIGN_OR_RETURN(const Packing packing, find_packing(file));
  FLUX_ASSIGN_OR_RETURN(const auto stream, open_stream(file, packing));
  Buffer<char> text(kChunkBytes);
  for (size_t n = kChunkBytes; n == kChunkBytes;) {
    const bool first = stream->text_offset() == 0;
    FLUX_ASSIGN_OR_RETURN(n, stream->read(text.data(), kChunkBytes));
    const std::string_view some(text.data(), n);
    FLUX_RETURN_IF_ERROR(take(some.substr(first ? byte_order_mark_bytes(some) : 0)));
  }
  return Status::ok();
}

Result<Counts> count_file(const std::string& path) {
  WordCounter counter(path);
  FLUX_RETURN_IF_ERROR(read_text(path, [&](std::string_view text) { return counter.add(text); }));
  return counter.finish();
}

// "word count": the count, or what is wrong.
struct VocabularyLine {
  std::string_view word;
  uint64_t count = 0;
  size_t column = 0;  // not 0: refused there
  std::string what;
};

VocabularyLine read_line(std::string_view line) {
  VocabularyLine out;
  if (const auto wrong = find_no_text(line)) return {{}, 0, wrong->column, wrong->what};
  const size_t blank = std::min(line.find_first_of(" \t"), line.size());
  out.word = line.substr(0, blank);
  if (out.word.empty()) return {{}, 0, 1, "a word is missing; write 'word count'"};
  const size_t begin = line.find_first_not_of(" \t", blank);
  if (begin == std::string_view::npos)
    return {{}, 0, line.size() + 1, "a count must follow the word"};
  const char* end = line.data() + line.size();
  const auto [stop, problem] = std::from_chars(line.data() + begin, end, out.count);
  if (problem != std::errc() || stop != end || out.count == 0)
    return {{},
            0,
            begin + 1,
            fmt::format("{} is no count; write a whole number from 1 on",
                        shown_field(line.substr(begin)))};
  return out;
}

// Takes the text of a vocabulary in pieces.
class VocabularyReader {
 public:
  VocabularyReader(const std::string& path, uint64_t bytes_max)
      : path_(path), bytes_left_(bytes_max) {}
  Status add(std::string_view text) {
    if (text.size() > bytes_left_)
      return invalid(
          "{}: its text is larger than a vocabulary may be; leave out rare words: flux "
          "data vocab --min-count",
          path_);
    bytes_left_ -= text.size();
    while (!text.empty()) {
      const size_t end = std::min(text.find('\n'), text.size());
      line_ += text.substr(0, std::min(end, kLineBytesMax + 1));
      if (line_.size() > kLineBytesMax)
        return invalid(
            "{}:{}:1: line is longer than {} bytes; is this a vocabulary, with 'word "
            "count' in each line?",
            path_, number_, kLineBytesMax);
      if (end == text.size()) break;
      FLUX_RETURN_IF_ERROR(end_line());
      text.remove_prefix(end + 1);
    }
    return Status::ok();
  }
  Result<Vocabulary> finish() {
    if (!line_.empty()) FLUX_RETURN_IF_ERROR(end_line());
    if (out_.words.empty())
      return invalid("{}: holds no word; make it with: flux data vocab FILES --out {}", path_,
                     path_);
    return std::move(out_);
  }

 private:
  Status end_line() {
    std::string_view line = line_;
    if (line.ends_with('\r')) line.remove_suffix(1);
    const VocabularyLine one = read_line(line);
    if (one.column != 0) return invalid("{}:{}:{}: {}", path_, number_, one.column, one.what);
    if (!seen_.insert(word_key(one.word)).second)
      return invalid("{}:{}:1: {} comes twice; a word has one line", path_, number_,
                     shown_field(one.word));
    if (__builtin_add_overflow(out_.total, one.count, &out_.total))
      return invalid("{}:{}: the counts up to here add up to more than 2^64", path_, number_);
    out_.words.emplace_back(one.word);
    out_.counts.push_back(one.count);
    line_.clear();
    ++number_;
    return Status::ok();
  }

  const std::string& path_;
  uint64_t bytes_left_;
  uint64_t number_ = 1;
  std::string line_;  // so far
  std::unordered_set<uint64_t> seen_;
  Vocabulary out_;
};

}  // namespace

Result<Vocabulary> Vocabulary::load(const std::string& path, uint64_t bytes_max) {
  VocabularyReader reader(path, bytes_max);
  FLUX_RETURN_IF_ERROR(read_text(path, [&](std::string_view text) { return reader.add(text); }));
  return reader.finish();
}

std::string Vocabulary::to_text() const {
  std::string text;
  for (size_t i = 0; i < words.size(); ++i) text += fmt::format("{} {}\n", words[i], counts[i]);
  const bool as_it_is = begins_as_text(text) && byte_order_mark_bytes(text) == 0;
  return as_it_is ? text : std::string(kByteOrderMark) + text;
}

Result<Vocabulary> count_words(std::span<const std::string> files, uint64_t min_count,
                               unsigned threads) {
  std::vector<Counts> parts(files.size());
  FLUX_RETURN_IF_ERROR(parallel_for(files.size(), threads, [&](size_t i) -> Status {
    FLUX_ASSIGN_OR_RETURN(parts[i], count_file(files[i]));
    return Status::ok();
  }));
  Counts all;
  for (Counts& part : parts) {
    if (all.size() < part.size()) all.swap(part);
    for (const auto& [word, count] : part) all[word] += count;
    Counts().swap(part);
  }
  std::vector<std::pair<uint64_t, std::string>> sorted;
  for (const auto& [word, count] : all)
    if (count >= min_count) sorted.emplace_back(count, word);
  if (sorted.empty())
    return invalid("no word comes at least {} times in {}; lower --min-count", min_count,
                   files.size() == 1 ? files[0] : fmt::format("{} files", files.size()));
  std::sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first > b.first : a.second < b.second;
  });
  Vocabulary out;
  for (auto& [count, word] : sorted) {
    out.words.push_back(std::move(word));
    out.counts.push_back(count);
    out.total += count;
  }
  return out;
}

}  // namespace flux
