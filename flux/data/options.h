// What scan() and open() both need to know of DataOptions, and their bounds.
// Pure functions. Failure: kInvalid that names the option, its value and what is allowed.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "flux/base/status.h"
#include "flux/data/dataset.h"

namespace flux {

constexpr uint32_t kBatchSizeMax = 1U << 24;
constexpr uint64_t kBlockBytesMax = 1ULL << 31;  // a block is held in memory as a whole

Status check_data_options(const DataOptions& options);
// As Geometry::pipe has it.
std::string pipe_text(const PipeOptions& pipe);
// Of paths that a cut can name: valid UTF-8, and no file twice, also through links.
Status check_paths(std::span<const std::string> files);
// What is said of line `line` (from 1) of a file.
Status line_too_long(const std::string& path, uint64_t line);

}  // namespace flux
