// Files that are either whole or absent: written aside, flushed to disk, renamed.
//
// Bytes only; this library never learns what is in them. Safe from any thread as long as two
// threads do not write the same path. Failure: Status that names the path and the system's reason;
// after a failed write the temporary file is removed and the old file stands as it was.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "flux/base/status.h"

namespace flux {

// Ending of everything that is not committed yet; leftovers may be deleted at any start.
constexpr std::string_view kTemporarySuffix = ".tmp";

// Creates or replaces `path` (behind links) so that a crash at any moment leaves the old or the new
// content.
Status write_file_atomic(const std::string& path, std::string_view content);
// Creates `path` and flushes it to disk, without the rename: for files inside a folder that is
// itself not committed yet.
Status write_file_synced(const std::string& path, std::string_view content);
// Where a file that a person names is really to be written: links are followed to their end.
std::string resolve_links(const std::string& path);
// A device, pipe or socket, which must be written in place; a file that is not there is none.
bool is_special_file(const std::string& path);
Result<std::string> read_whole_file(const std::string& path, uint64_t bytes_max);

Status make_folders(const std::string& path);  // like mkdir -p
Status sync_folder(const std::string& path);   // makes renames and creations in it durable
// False only if it is certainly not there.
bool path_exists(const std::string& path);
bool is_folder(const std::string& path);
// Names (not paths) in a folder, sorted; none if it does not exist.
Result<std::vector<std::string>> read_folder(const std::string& path);
// The same where nothing depends on it: empty, too, if it cannot be read.
std::vector<std::string> list_folder(const std::string& path);
// Deletes a folder with all that is in it, or a file; not existing is fine. Follows no links.
Status remove_all(const std::string& path);
std::string join_path(std::string_view folder, std::string_view name);
std::string parent_folder(const std::string& path);

}  // namespace flux
