// The Parquet plug-in, loaded when it is needed: flux_parquet.so beside the program, one folder up,
// or in ../lib/flux.
//
// Threads: any. Ownership: it stays loaded until the process ends.
// Failure: kInvalid that says where it was looked for and how it is built.
#pragma once

#include "flux/base/status.h"
#include "flux/data/parquet/plugin_api.h"

namespace flux {

Result<const parquet_plugin::Api*> load_parquet_plugin();

}  // namespace flux
