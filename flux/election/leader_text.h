// How a claim is written down, in a term's file and in etcd's values: one line of JSON.
// Pure functions. Reading never fails: what is torn or foreign gives empty fields, because only
// names of files and keys decide anything.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "flux/election/election.h"

namespace flux {

// Terms have names of 12 digits, so that names sort as numbers do.
constexpr uint64_t kTermMax = 999'999'999'999;
std::string term_name(uint64_t term);
std::optional<uint64_t> term_of(std::string_view name);  // nothing: the name of something else

std::string encode_leader(const LeaderInfo& leader);
LeaderInfo decode_leader(std::string_view text);
// "host.17 (term 3, tcp:10.0.0.1:7000)", with what is known.
std::string describe(const LeaderInfo& leader);

}  // namespace flux
