#include "flux/data/dataset.h"

#include <utility>

#include "flux/base/text.h"
#include "flux/data/blocks/record_schema.h"
#include "flux/data/format.h"
#include "flux/data/frozen_vocabulary.h"
#include "flux/data/options.h"
#include "flux/data/shuffled_block.h"
#include "flux/data/sources/text_file.h"
#include "flux/data/text/csv.h"
#include "flux/storage/read_file.h"

namespace flux {
namespace {

class TextDataset final : public Dataset {
 public:
  TextDataset(Geometry geometry, const DataOptions& options,
              std::unique_ptr<const BlockFormat> format)
      : geometry_(std::move(geometry)),
        options_(std::make_shared<const DataOptions>(options)),
        features_(features_of(options)),
        header_lines_(header_lines_of(options)),
        format_(std::move(format)),
        texts_(geometry_, options.pipe) {}
  const Geometry& geometry() const override { return geometry_; }
  const Features& features() const override { return features_; }
  Result<std::unique_ptr<BlockReader>> open_block(uint32_t index, uint32_t epoch) const override;

 private:
  const Geometry geometry_;
  const std::shared_ptr<const DataOptions> options_;
  const Features features_;
  const uint64_t header_lines_;
  const std::unique_ptr<const BlockFormat> format_;
  const TextFiles texts_;
  const std::shared_ptr<BufferPool> pool_ = std::make_shared<BufferPool>();
};

Result<std::unique_ptr<BlockReader>> TextDataset::open_block(uint32_t index, uint32_t epoch) const {
  FLUX_CHECK(index < geometry_.blocks.size(), "block {} of {}", index, geometry_.blocks.size());
  const DataBlock& block = geometry_.blocks[index];
  const DataFile& file = geometry_.files[block.file];
  const uint64_t first_line = block.lines_before + 1 + header_lines_;
  const bool packed = file.packing != Packing::kPlain;
  auto out =
      format_->make({block, geometry_.batch_size, file.path, packed, first_line, epoch}, pool_);
  FLUX_RETURN_IF_ERROR(texts_.read(block, out->text()));
  FLUX_RETURN_IF_ERROR(out->prepare(block_order(geometry_, index, epoch)));
  if (geometry_.shuffle_seed == 0) return std::unique_ptr<BlockReader>(std::move(out));
  return std::unique_ptr<BlockReader>(
      std::make_unique<ShuffledBlock>(std::move(out), geometry_, index, options_));
}

}  // namespace

Result<std::unique_ptr<Dataset>> Dataset::open(const Geometry& geometry,
                                               const DataOptions& options) {
  FLUX_RETURN_IF_ERROR(check_data_options(options));
  if (options.global_shuffle && geometry.format == "blocks" && options.format != "blocks")
    return open(geometry, block_file_options(options));
  Geometry now = geometry;  // with the times of change that are found
  now.format = options.format;
  now.pipe = pipe_text(options.pipe);
  now.batch_size = options.batch_size;
  now.shuffle_seed = shuffle_seed_of(options);
  for (size_t i = 0; i < now.files.size(); ++i) {
    DataFile& file = now.files[i];
    if (is_frozen_vocabulary(options, now, i)) {
      FLUX_ASSIGN_OR_RETURN(file, vocabulary_now(options, file));
      continue;
    }
    FLUX_ASSIGN_OR_RETURN(const ReadFile opened, ReadFile::open(file.path));
    const auto cut_ns =
        std::exchange(file.modified_ns, static_cast<uint64_t>(opened.modified_ns()));
    if (opened.size() != file.bytes || file.modified_ns == cut_ns) {
      file.bytes = opened.size();
      continue;
    }
    const auto again = scan({&file.path, 1}, options, 1);  // written anew: the same text?
    file.content = again.is_ok() ? again.value().files[0].content : ~file.content;
  }
  const std::vector<std::string> differences = geometry_differences(geometry, now);
  if (!differences.empty())
    return invalid(
        "the data is not what this pass was cut from: {}\n"
        "put it back until the pass is closed, or start over with --fresh",
        join(differences, "; "));
  for (const DataBlock& block : geometry.blocks)
    if (block.end - block.begin >= kBlockBytesMax)
      return error(Code::kCorrupt, "geometry: a block of {}", human_bytes(block.end - block.begin));
  const DataFormat* kind = find_format(options.format);
  if (kind->open != nullptr) return kind->open(now, options);
  std::vector<std::string> paths;
  for (const DataFile& file : geometry.files) paths.push_back(file.path);
  FLUX_ASSIGN_OR_RETURN(const DataOptions known, with_csv_header(paths, options));
  FLUX_ASSIGN_OR_RETURN(auto format, kind->lines(known));
  return std::unique_ptr<Dataset>(
      std::make_unique<TextDataset>(std::move(now), options, std::move(format)));
}

}  // namespace flux
