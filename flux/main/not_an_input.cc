#include "flux/main/not_an_input.h"

#include <sys/stat.h>

namespace flux {

Status not_an_input(const std::string& out, std::span<const std::string> inputs) {
  struct stat written = {}, read = {};
  if (stat(out.c_str(), &written) != 0 || !S_ISREG(written.st_mode)) return Status::ok();
  for (const std::string& input : inputs)
    if (stat(input.c_str(), &read) == 0 && read.st_dev == written.st_dev &&
        read.st_ino == written.st_ino)
      return invalid("--out {}: is {}, which is read; name another file", out, input);
  return Status::ok();
}

}  // namespace flux
