#include "flux/data/parquet/plugin.h"

#include <filesystem>

#include <dlfcn.h>

namespace flux {
namespace {

constexpr const char* kName = "flux_parquet.so";

std::filesystem::path program_folder() {
  std::error_code failed;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", failed);
  return failed ? std::filesystem::path(".") : program.parent_path();
}

Result<const parquet_plugin::Api*> load() {
  const std::filesystem::path beside = program_folder();
  for (const auto& folder : {beside, beside / "..", beside / ".." / "lib" / "flux"}) {
    const std::string path = (folder / kName).lexically_normal().string();
    std::error_code failed;
    if (!std::filesystem::exists(path, failed)) continue;
    void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr)
      return invalid("{}: cannot be loaded: {}; build it again with 'make parquet'", path,
                     ::dlerror());
    using Entry = const parquet_plugin::Api* (*)();
    const auto entry = reinterpret_cast<Entry>(::dlsym(library, parquet_plugin::kEntry));
    if (entry == nullptr || entry()->version != parquet_plugin::kVersion)
      return invalid("{}: is of another version of flux; build it again with 'make parquet'", path);
    return entry();
  }
  return invalid(
      "format parquet needs the plug-in {}, which is not beside the program ({}); build it with "
      "'make parquet'",
      kName, beside.string());
}

}  // namespace

Result<const parquet_plugin::Api*> load_parquet_plugin() {
  static const Result<const parquet_plugin::Api*> loaded = load();
  return loaded;
}

}  // namespace flux
