// Scratch files for the tests of this folder: a directory that is removed at the end, and gzip in
// both directions by zlib's own one-shot calls. Included by tests only.
#pragma once

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

#include <fmt/format.h>
#include <unistd.h>
#include <zlib.h>

#include "flux/base/check.h"

namespace flux {

class TestDirectory {
 public:
  TestDirectory() {
    std::string name = (std::filesystem::temp_directory_path() / "flux_data_XXXXXX").string();
    FLUX_CHECK(::mkdtemp(name.data()) != nullptr, "mkdtemp {}", name);
    root_ = name;
  }
  ~TestDirectory() { std::filesystem::remove_all(root_); }
  TestDirectory(const TestDirectory&) = delete;
  TestDirectory& operator=(const TestDirectory&) = delete;
  std::string path(const std::string& name) const { return root_ + "/" + name; }
  std::string write(const std::string& name, std::string_view text) const {
    std::ofstream(path(name), std::ios::binary)
        .write(text.data(), static_cast<std::streamsize>(text.size()));
    return path(name);
  }

 private:
  std::string root_;
};

inline std::string read_text(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

inline std::string gzip_text(std::string_view text, int level = 6) {
  z_stream z = {};
  FLUX_CHECK(deflateInit2(&z, level, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY) == Z_OK, "deflate");
  std::string out(deflateBound(&z, text.size()) + 64, '\0');
  z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  z.avail_in = static_cast<uInt>(text.size());
  z.next_out = reinterpret_cast<Bytef*>(out.data());
  z.avail_out = static_cast<uInt>(out.size());
  FLUX_CHECK(deflate(&z, Z_FINISH) == Z_STREAM_END, "deflate");
  out.resize(z.total_out);
  deflateEnd(&z);
  return out;
}

// All members of a gzip file.
inline std::string gunzip_text(std::string bytes) {
  std::string out;
  z_stream z = {};
  FLUX_CHECK(inflateInit2(&z, 31) == Z_OK, "inflate");
  z.next_in = reinterpret_cast<Bytef*>(bytes.data());
  z.avail_in = static_cast<uInt>(bytes.size());
  std::string piece(1 << 16, '\0');
  while (z.avail_in > 0) {
    z.next_out = reinterpret_cast<Bytef*>(piece.data());
    z.avail_out = static_cast<uInt>(piece.size());
    const int rc = inflate(&z, Z_NO_FLUSH);
    FLUX_CHECK(rc == Z_OK || rc == Z_STREAM_END, "inflate {}", rc);
    out.append(piece.data(), piece.size() - z.avail_out);
    if (rc == Z_STREAM_END) FLUX_CHECK(inflateReset(&z) == Z_OK, "inflateReset");
  }
  inflateEnd(&z);
  return out;
}

}  // namespace flux
