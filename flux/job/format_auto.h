// data.format of a job that leaves it to its files. Parsing a job reads no data, so whoever has the
// files puts their format in its place (flux/main/found_format.h); a constant.
#pragma once

namespace flux {

inline constexpr const char* kFormatAuto = "auto";

}  // namespace flux
