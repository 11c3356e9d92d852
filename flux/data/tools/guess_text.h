// Which text format some lines are, and what they hold: a guess for each format from the words of
// the lines, which counts only if the format's own parser then reads every line.
//
// What lines cannot say is made up: names of slots (slot1, field0), and what is a label. Pure
// functions. Nothing fails: no guess is an empty optional.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "flux/data/dataset.h"

namespace flux {

using Lines = std::span<const std::string>;

// In the order in which they are asked: the first that reads all lines is the guess.
std::optional<DataOptions> guess_vw(Lines lines);
std::optional<DataOptions> guess_libffm(Lines lines);
std::optional<DataOptions> guess_libsvm(Lines lines);
std::optional<DataOptions> guess_multislot(Lines lines);
std::optional<DataOptions> guess_csv(Lines lines);

// Whether the parser of options.format takes every line.
bool reads_all(const DataOptions& options, Lines lines);

}  // namespace flux
