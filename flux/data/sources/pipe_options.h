// PipeOptions: a command through which data files go before their text is parsed.
// A plain value.
#pragma once

#include <string>
#include <vector>

namespace flux {

struct PipeOptions {
  // A program and its arguments, never a shell's line. It gets a file's bytes as its standard
  // input; its standard output is the text. Empty: files are read as they are.
  std::vector<std::string> command;
  double timeout_s = 60;  // how long it may write nothing while it is waited for
  double max_gb = 256;    // of text, in 10^9 bytes, that it may write for one file
};

}  // namespace flux
