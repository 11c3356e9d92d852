#include "flux/data/sources/pipe_stream.h"

#include <cerrno>
#include <cstring>

#include <poll.h>
#include <unistd.h>

#include "flux/base/text.h"

namespace flux {
namespace {

using Clock = std::chrono::steady_clock;
constexpr size_t kErrorBytesMax = 4096;  // of standard error that is kept
constexpr size_t kErrorLines = 5;        // of it that are shown

// The last lines of what a command said, without control characters.
std::string last_lines(const std::string& errors) {
  std::vector<std::string> lines;
  for (const std::string& line : split(errors, '\n')) {
    std::string shown;
    for (const char c : line)
      if (static_cast<unsigned char>(c) >= 0x20 && c != 0x7f) shown += c;
    if (!shown.empty()) lines.push_back(shown);
  }
  if (lines.size() > kErrorLines)
    lines.erase(lines.begin(), lines.end() - static_cast<ptrdiff_t>(kErrorLines));
  return lines.empty() ? "" : "; it said:\n  " + join(lines, "\n  ");
}

}  // namespace

Result<std::unique_ptr<PipeStream>> PipeStream::start(const std::string& path,
                                                      const PipeOptions& options) {
  auto child = ChildProcess::start(options.command, path);
  if (!child.is_ok()) return child.status().with_context(path);
  return std::unique_ptr<PipeStream>(new PipeStream(path, options, std::move(child).value()));
}

Status PipeStream::refuse(const std::string& what) const {
  return invalid("{}: the command {} {}{}", path_, join(options_.command, " "), what,
                 last_lines(errors_));
}

void PipeStream::take_errors() {
  char bytes[kErrorBytesMax];
  const ssize_t n = ::read(child_->errors(), bytes, sizeof bytes);
  if (n == 0) return child_->close_errors();
  if (n < 0) return;
  errors_.append(bytes, static_cast<size_t>(n));
  if (errors_.size() > kErrorBytesMax) errors_.erase(0, errors_.size() - kErrorBytesMax);
}

Status PipeStream::wait_for_output() {
  const auto deadline = Clock::now() + timeout();
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
    pollfd ends[2] = {{child_->output(), POLLIN, 0}, {child_->errors(), POLLIN, 0}};
    const int ready = left > 0 ? ::poll(ends, 2, static_cast<int>(left)) : 0;
    if (ready < 0 && errno != EINTR) return errno_status("cannot wait for a pipe", errno);
    if (ready == 0) {
      child_->kill();
      return refuse(fmt::format("wrote nothing for {} s (data.pipe_timeout) and was killed",
                                options_.timeout_s));
    }
    if (ready > 0 && ends[1].revents != 0) take_errors();
    if (ready > 0 && ends[0].revents != 0) return Status::ok();
  }
}

// A command that never ends would be read for ever by whoever scans its text.
Status PipeStream::check_size() {
  if (static_cast<double>(text_) <= options_.max_gb * 1e9) return Status::ok();
  child_->kill();
  return refuse(
      fmt::format("wrote more than {} GB of text (data.pipe_max_gb) and was killed; does "
                  "it ever end?",
                  options_.max_gb));
}

// All of its output was read: how did it end?
Status PipeStream::finish() {
  ChildEnd end;
  if (!child_->wait(timeout(), &end)) {
    child_->kill();
    return refuse("closed its output but did not end, and was killed");
  }
  if (child_->errors() >= 0) take_errors();
  if (end.signal != 0)
    return refuse(fmt::format("was killed by signal {} ({})", end.signal, ::strsignal(end.signal)));
  if (end.code != 0) return refuse(fmt::format("ended with exit code {}", end.code));
  file_bytes_ = child_->input_offset();
  child_.reset();
  return Status::ok();
}

std::chrono::milliseconds PipeStream::timeout() const {
  return std::chrono::ceil<std::chrono::milliseconds>(
      std::chrono::duration<double>(options_.timeout_s));
}

uint64_t PipeStream::file_offset() const {
  return child_ != nullptr ? child_->input_offset() : file_bytes_;
}

Result<size_t> PipeStream::read(char* out, size_t size) {
  size_t done = 0;
  while (done < size && child_ != nullptr) {
    const ssize_t n = ::read(child_->output(), out + done, size - done);
    if (n > 0) {
      done += static_cast<size_t>(n);
      text_ += static_cast<size_t>(n);
      FLUX_RETURN_IF_ERROR(check_size());
    } else if (n == 0) {
      FLUX_RETURN_IF_ERROR(finish());
    } else if (errno == EAGAIN) {
      FLUX_RETURN_IF_ERROR(wait_for_output());
    } else if (errno != EINTR) {
      return errno_status("cannot read from a pipe", errno);
    }
  }
  return done;
}

}  // namespace flux
