// KeptText: a TextFile behind a stream that stays open; text_file.h says why.
// Threads: any; reads wait for each other. Failure: as the stream; kInvalid if the text is shorter.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "flux/data/sources/text_file.h"
#include "flux/data/sources/text_stream.h"

namespace flux {

// How a file's streams are made.
class StreamOpener {
 public:
  virtual ~StreamOpener() = default;
  // Where the nearest entry at or before `begin` is.
  virtual uint64_t nearest(uint64_t begin) const = 0;
  virtual Result<std::unique_ptr<TextStream>> open(uint64_t nearest) const = 0;
};

class KeptText final : public TextFile {
 public:
  // `cuts`: text offsets, ascending, where reads begin.
  KeptText(std::string path, std::unique_ptr<const StreamOpener> opener, std::vector<uint64_t> cuts)
      : path_(std::move(path)), opener_(std::move(opener)), cuts_(std::move(cuts)) {}
  Status read(uint64_t begin, size_t size, char* out) override;
  bool keeps_stream() const override { return true; }
  void drop() override;

 private:
  Status read_exactly(TextStream* stream, size_t size, char* out) const;
  Status skip(TextStream* stream, uint64_t begin);
  Status read_near(uint64_t entry, uint64_t begin, size_t size, char* out);
  Status read_kept(uint64_t entry, uint64_t begin, size_t size, char* out);
  bool take_passed(uint64_t begin, size_t size, char* out);
  void keep_passed(uint64_t begin, std::vector<char> text);

  const std::string path_;
  const std::unique_ptr<const StreamOpener> opener_;
  const std::vector<uint64_t> cuts_;
  std::mutex mutex_;
  std::unique_ptr<TextStream> stream_;            // under mutex_, as the rest
  std::map<uint64_t, std::vector<char>> passed_;  // text that was passed over, by its begin
  uint64_t passed_bytes_ = 0;
};

}  // namespace flux
