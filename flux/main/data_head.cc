// flux data head: the first records of data, as a person would write them.
#include <cerrno>
#include <cstdio>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "flux/base/text.h"
#include "flux/data/key_names.h"
#include "flux/data/plain_text.h"
#include "flux/data/sources/line_stream.h"
#include "flux/data/tools/first_records.h"
#include "flux/data/tools/record_text.h"
#include "flux/main/commands.h"
#include "flux/main/data_source.h"

namespace flux {
namespace {

// The token as the line has it.
void criteo_key_text(uint64_t key, std::string* out) {
  if (key & (1ULL << 48))
    *out += "-";
  else
    *out += fmt::format("{:x}", static_cast<uint32_t>(key));
}

// As it may stand in a line of words: what would part them, and the characters of `marks`, as a
// number.
void append_escaped(std::string_view text, std::string_view marks, std::string* out) {
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte <= 0x20 || byte == 0x7f || marks.find(c) != std::string_view::npos)
      *out += fmt::format("\\x{:02x}", byte);
    else
      *out += c;
  }
}

// What parts a name and a key, and what the numbers begin with.
constexpr std::string_view kKeyMarks = ":\\", kNameMarks = "\\";

void escape_all(std::vector<std::string>* names) {
  for (std::string& name : *names) {
    std::string escaped;
    append_escaped(name, kKeyMarks, &escaped);
    name = std::move(escaped);
  }
}

Status print(const std::string& text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size())
    return errno_status("cannot write to standard output", errno);
  return Status::ok();
}

// Sentences as they are: what a model reads of them is drawn anew in each epoch.
Status print_sentences(const DataSource& source, uint64_t left) {
  for (const std::string& path : source.files) {
    if (left == 0) break;
    FLUX_ASSIGN_OR_RETURN(const auto lines, LineStream::open(path, source.options.pipe));
    for (; left > 0; --left) {
      FLUX_ASSIGN_OR_RETURN(std::string_view line, lines->next(1));
      if (line.empty()) break;
      if (line.ends_with('\n')) line.remove_suffix(1);
      if (const auto wrong = find_no_text(line))
        return invalid("{}:{}:{}: {}", path, lines->lines(), wrong->column, wrong->what);
      FLUX_RETURN_IF_ERROR(print(std::string(line) + '\n'));
    }
  }
  return Status::ok();
}

Status print_records(DataSource source, uint64_t left) {
  // As the lines have them; the keys of the others are what they are.
  const std::string& format = source.options.format;
  source.options.raw_keys = format != "criteo_tsv" && format != "blocks";
  FLUX_ASSIGN_OR_RETURN(const FirstRecords data, FirstRecords::open(source.files, source.options));
  RecordSchema schema = data.schema();
  escape_all(&schema.slots);
  escape_all(&schema.dense);
  KeyNames names;
  KeyText key_text = [&](uint64_t key, std::string* out) {
    if (const std::string* name = names.find(key))
      append_escaped(*name, kKeyMarks, out);
    else
      *out += std::to_string(key);
  };
  if (format == "criteo_tsv") key_text = criteo_key_text;
  // What comes before a mistake is shown, too.
  const auto sink = [&](const Status& refused, const Batch& batch,
                        const std::vector<std::string>& called) -> Status {
    FLUX_RETURN_IF_ERROR(refused);
    std::string text;
    for (uint32_t i = 0; i < batch.size && left > 0; ++i, --left) {
      std::string name;
      if (!called.empty()) append_escaped(called[i], kNameMarks, &name);
      append_record_text(schema, batch, i, key_text, name, &text);
      text += '\n';
    }
    return print(text);
  };
  for (size_t file = 0; file < data.files() && left > 0; ++file)
    FLUX_RETURN_IF_ERROR(data.read(file, left, sink).status());
  return Status::ok();
}

Status head(const DataArguments& arguments) {
  FLUX_ASSIGN_OR_RETURN(DataSource source, find_source(arguments));
  return source.options.format == "sentences" ? print_sentences(source, arguments.records)
                                              : print_records(std::move(source), arguments.records);
}

}  // namespace

int data_head_command(const DataArguments& arguments) {
  return report(head(arguments));
}

}  // namespace flux
