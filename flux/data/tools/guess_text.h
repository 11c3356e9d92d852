// Which text format some lines are, and what they hold: a guess for each format from the words of
// the lines, which counts only if the format's own parser then reads every line. Where no format
// reads all lines, the one that reads most of them, and more than half, is taken: the others are
// mistakes, which whoever reads the lines will name. Of csv and feasign also a hundredth of what
// makes up a column or slot may be mistakes.
//
// What lines cannot say is made up: names of slots (slot1, field0), and what is a label. Pure
// functions. Nothing fails: no guess is an empty optional.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "flux/data/dataset.h"

namespace flux {

using Lines = std::span<const std::string>;

// One in a hundred may be a mistake, which is for whoever reads the records to name.
inline bool are_mistakes(uint64_t odd, uint64_t all) {
  return odd * 100 <= all;
}

std::optional<DataOptions> guess_text_options(Lines lines);

// Of one format, for all of the lines. In the order in which they are asked.
std::optional<DataOptions> guess_vw(Lines lines);
std::optional<DataOptions> guess_libffm(Lines lines);
std::optional<DataOptions> guess_libsvm(Lines lines);
std::optional<DataOptions> guess_multislot(Lines lines);
std::optional<DataOptions> guess_csv(Lines lines);
std::optional<DataOptions> guess_feasign(Lines lines);

// Whether the parser of options.format takes every line.
bool reads_all(const DataOptions& options, Lines lines);

// Whether the keys of these lines, which `options` read, are likely those of tables, as `flux data
// convert` writes them: all but mistakes are whole numbers from 2^32 on, which hashes are and keys
// that somebody counted are not.
bool has_table_keys(const DataOptions& options, Lines lines);

}  // namespace flux
