#include "flux/main/unlabelled.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <string_view>
#include <utility>

#include "flux/base/text.h"
#include "flux/data/lines.h"
#include "flux/data/sources/text_stream.h"
#include "flux/data/text/columns.h"
#include "flux/data/tools/first_records.h"
#include "flux/storage/atomic_file.h"
#include "flux/storage/read_file.h"

namespace flux {
namespace {

// What is put before the header, if there is one, and before each other line.
struct Added {
  std::string header, line;
};

std::string times(size_t n, const std::string& text, const std::string& between) {
  return join(std::vector<std::string>(n, text), between);
}

// Formats that go by place: the labels have to come first.
Status labels_are_first(const DataOptions& options) {
  const std::vector<std::string> columns =
      options.columns.empty() ? default_columns(options) : options.columns;
  if (columns.size() >= options.labels.size() &&
      std::is_permutation(options.labels.begin(), options.labels.end(), columns.begin()))
    return Status::ok();
  return invalid("--no-labels: labels have to be the first of data.columns, which are {}",
                 join(columns, ", "));
}

Result<Added> added_to_csv(const DataOptions& options) {
  const std::string separator = options.csv.separator == "tab" ? "\t" : options.csv.separator;
  Added added;
  // A job's columns count, whatever the header says.
  if (!options.csv.header || !options.columns.empty())
    FLUX_RETURN_IF_ERROR(labels_are_first(options));
  if (options.csv.header) added.header = join(options.labels, separator) + separator;
  added.line = times(options.labels.size(), "0", separator) + separator;
  return added;
}

Result<Added> added_to(const DataOptions& options) {
  const size_t labels = options.labels.size();
  if (options.format == "criteo_tsv") return Added{"", "0\t"};
  if (options.format == "feasign") return Added{"", times(labels, "0", ",") + " "};
  if (options.format == "libsvm" || options.format == "libffm" || options.format == "vw")
    return Added{"", "0 "};
  if (options.format == "csv") return added_to_csv(options);
  if (options.format != "multislot")
    return invalid(
        "--no-labels is for lines of criteo_tsv, feasign, multislot, libsvm, libffm, vw and csv, "
        "not of {}",
        options.format);
  FLUX_RETURN_IF_ERROR(labels_are_first(options));
  return Added{"", times(labels, "1 0", " ") + " "};
}

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

// Lines as they come, in pieces of any size.
class LineMarker {
 public:
  LineMarker(Added added, bool header) : added_(std::move(added)), header_(header) {}
  void add(std::string_view text, std::string* out) {
    while (!text.empty()) {
      if (begins_) out->append(header_ ? added_.header : added_.line);
      const size_t newline = text.find('\n');
      begins_ = newline != std::string_view::npos;
      const std::string_view some = begins_ ? text.substr(0, newline + 1) : text;
      out->append(some);
      text.remove_prefix(some.size());
      header_ = header_ && !begins_;
    }
  }

 private:
  const Added added_;
  bool header_;
  bool begins_ = true;
};

Status copy_labelled(const std::string& from, const DataOptions& options, const Added& added,
                     const std::string& to) {
  FLUX_ASSIGN_OR_RETURN(const ReadFile file, ReadFile::open(from));
  Packing packing = Packing::kPipe;
  if (options.pipe.command.empty()) {
    FLUX_ASSIGN_OR_RETURN(packing, find_packing(file));
  }
  FLUX_ASSIGN_OR_RETURN(const auto in, open_stream(file, packing, options.pipe));
  const std::unique_ptr<std::FILE, CloseFile> out(std::fopen(to.c_str(), "wbx"));
  if (!out) return errno_status("cannot create " + to, errno);
  LineMarker marker(added, header_lines_of(options) > 0);
  std::vector<char> buffer(1 << 18);
  std::string labelled;
  for (size_t n = buffer.size(); n == buffer.size();) {
    FLUX_ASSIGN_OR_RETURN(n, in->read(buffer.data(), buffer.size()));
    std::string_view text(buffer.data(), n);
    if (in->text_offset() == n) text.remove_prefix(byte_order_mark_bytes(text));
    labelled.clear();
    marker.add(text, &labelled);
    if (std::fwrite(labelled.data(), 1, labelled.size(), out.get()) != labelled.size())
      return errno_status("cannot write " + to, errno);
  }
  return std::fflush(out.get()) == 0 ? Status::ok() : errno_status("cannot write " + to, errno);
}

// ":LINE:COLUMN" at the begin of `text` with a column that is smaller by `added`; "": it is none.
std::string moved_place(std::string_view text, size_t added, size_t* bytes) {
  size_t line = 0, column = 0;
  const char* const end = text.data() + text.size();
  if (!text.starts_with(':')) return "";
  const auto first = std::from_chars(text.data() + 1, end, line);
  if (first.ec != std::errc() || first.ptr == end || *first.ptr != ':') return "";
  const auto second = std::from_chars(first.ptr + 1, end, column);
  if (second.ec != std::errc()) return "";
  *bytes = static_cast<size_t>(second.ptr - text.data());
  return fmt::format(":{}:{}", line, column > added ? column - added : 1);
}

// One file for the other wherever it is named, with the columns behind it.
void replace_all(const std::string& copy, const std::string& own, size_t added,
                 std::string* message) {
  for (size_t at; (at = message->find(copy)) != std::string::npos;) {
    const std::string_view behind = std::string_view(*message).substr(at + copy.size());
    size_t bytes = 0;
    const std::string place = moved_place(behind, added, &bytes);
    message->replace(at, copy.size() + bytes, own + place);
  }
}

// Whether the first record of a file can be read as it is, which one without labels cannot.
bool has_labels(const std::string& file, const DataOptions& options) {
  const auto data = FirstRecords::open({file}, options);
  if (!data.is_ok()) return false;
  bool good = false;
  const auto sink = [&](const Status& refused, const Batch&, const auto& /*names*/) -> Status {
    good = refused.is_ok();
    return error(Code::kCancelled, "enough");
  };
  const auto read = data.value().read(0, 1, sink);
  return good && (read.is_ok() || read.status().code() == Code::kCancelled);
}

}  // namespace

Result<LabelledCopy> LabelledCopy::make(std::vector<std::string> files,
                                        const DataOptions& options) {
  LabelledCopy out;
  FLUX_ASSIGN_OR_RETURN(const Added added, added_to(options));
  FLUX_ASSIGN_OR_RETURN(out.folder_, TemporaryFolder::create());
  out.added_ = added.line.size();
  out.own_ = std::move(files);
  out.options_ = options;
  for (size_t i = 0; i < out.own_.size(); ++i) {
    out.copies_.push_back(join_path(out.folder_->path(), fmt::format("input-{:05}.txt", i)));
    FLUX_RETURN_IF_ERROR(copy_labelled(out.own_[i], options, added, out.copies_.back()));
  }
  return out;
}

Status LabelledCopy::in_own_files(const Status& status) const {
  std::string message = status.message();
  const bool counts = message.find("; expected ") != std::string::npos;
  for (size_t i = 0; i < copies_.size(); ++i) {
    const bool named = message.find(copies_[i]) != std::string::npos;
    if (named && status.code() == Code::kInvalid && has_labels(own_[i], options_))
      return invalid("{}: its lines have labels; leave out --no-labels", own_[i]);
    replace_all(copies_[i], own_[i], added_, &message);
    if (named && counts) message += " (counted with the labels that --no-labels puts before lines)";
  }
  return Status(status.code(), std::move(message));
}

}  // namespace flux
