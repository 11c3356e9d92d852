// The `flux` binary: flags to options to one command.
#include <cstdio>
#include <exception>
#include <new>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <unistd.h>

#include "flux/base/cpu.h"
#include "flux/base/denormals.h"
#include "flux/base/text.h"
#include "flux/main/command_line.h"

namespace {

using namespace flux;

std::string quoted(const std::string& word) {
  const char* plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./=:,+-";
  if (!word.empty() && word.find_first_not_of(plain) == std::string::npos) return word;
  std::string out = "'";
  for (const char c : word) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

// The same command without --fresh, which would throw the work away.
std::string resume_command(int argc, char** argv) {
  std::string out;
  for (int i = 0; i < argc; ++i)
    if (std::string(argv[i]) != "--fresh") out += (out.empty() ? "" : " ") + quoted(argv[i]);
  return out;
}

int usage_error(const CLI::App& app, const CLI::ParseError& failure, int argc, char** argv) {
  if (failure.get_exit_code() == 0) return app.exit(failure);  // --help, --version
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands({})) names.push_back(command->get_name());
  std::string what = failure.what();
  if (argc < 2) what = "no command";
  if (argc > 1 && argv[1][0] != '-' && app.get_subcommands().empty())
    what = fmt::format("unknown command '{}'{}", argv[1], did_you_mean(argv[1], names));
  fmt::print(stderr, "flux: {}\ncommands: {}; try 'flux --help'\n", what, join(names, ", "));
  return 2;
}

// Unwinding out of one thread would wait for others that never end, so a process without memory
// says so and goes at once: whoever watches it must not have to wait.
void out_of_memory() {
  constexpr char kText[] = "flux: out of memory\n";
  const ssize_t ignored = ::write(STDERR_FILENO, kText, sizeof kText - 1);
  (void)ignored;
  ::_exit(1);
}

int run_main(int argc, char** argv) {
  if (!cpu_has_baseline()) {
    std::fputs("flux: this CPU lacks AVX2, FMA or BMI2 (x86-64-v3), which flux needs\n", stderr);
    return 2;
  }
  CLI::App app{"flux trains very large sparse models and does not stop.", "flux"};
  app.set_version_flag("--version", std::string("flux ") + kVersion);
  app.require_subcommand(1);
  app.footer(
      "Examples:\n"
      "  flux data gen criteo --examples 100000 --out data/train.tsv\n"
      "  flux run examples/ctr_dnn/job.yaml --set data.train=data/train.tsv\n"
      "  flux run examples/ctr_dnn/job.yaml --servers 2 --workers 3\n"
      "Running a job again goes on where it stopped.");
  int exit_code = 0;
  Arguments arguments;
  arguments.run.resume_command = resume_command(argc, argv);
  arguments.coordinator.resume_command = arguments.run.resume_command;
  add_job_commands(&app, &arguments, &exit_code);
  add_role_commands(&app, &arguments, &exit_code);
  add_running_commands(&app, &arguments, &exit_code);
  add_tool_commands(&app, &arguments, &exit_code);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& failure) {
    return usage_error(app, failure, argc, argv);
  }
  return exit_code;
}

}  // namespace

int main(int argc, char** argv) {
  std::set_new_handler(out_of_memory);
  flux::flush_denormals();
  try {
    return run_main(argc, argv);
  } catch (const std::exception& failure) {  // none is expected: the core throws nothing
    std::fprintf(stderr, "flux: %s\n", failure.what());
    return 1;
  }
}
