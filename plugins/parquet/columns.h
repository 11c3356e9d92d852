// Columns of an open Parquet file: which leaf each field at the top is, and what it holds.
// Plain values. Failure: none; what cannot be read is Kind::kOther.
#pragma once

#include <string>
#include <vector>

#include <parquet/metadata.h>
#include <parquet/schema.h>

#include "flux/data/parquet/plugin_api.h"

namespace flux::parquet_plugin {

struct FoundColumn {
  std::string name, type;
  Kind kind = Kind::kOther;
  bool many = false;
  bool is_unsigned = false;
  int leaf = -1;  // index of the Parquet column
};

std::vector<FoundColumn> find_columns(const ::parquet::SchemaDescriptor& schema);

}  // namespace flux::parquet_plugin
