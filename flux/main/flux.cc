// The `flux` binary: flags to options to one command.
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
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

// The command that the words of the command line lead to, and what they say of it.
struct Named {
  const CLI::App* app;
  std::string path = "flux";
  std::string unknown = "";  // the word behind it that is none of its commands
  bool alone = false;        // no word is behind it
};

Named named_command(const CLI::App& app, int argc, char** argv) {
  const auto any = [](const CLI::App*) { return true; };
  Named out{&app};
  int i = 1;
  for (; i < argc && !out.app->get_subcommands(any).empty(); ++i) {
    const std::string word = argv[i];
    const CLI::App* next = nullptr;
    for (const CLI::App* command : out.app->get_subcommands(any))
      if (command->get_name() == word) next = command;
    if (next == nullptr) {
      if (!word.starts_with('-')) out.unknown = word;
      break;
    }
    out.app = next;
    out.path += " " + word;
  }
  out.alone = i == argc;
  return out;
}

// `flux help data head` is `flux data head --help`.
std::vector<char*> without_help(int argc, char** argv) {
  static char help[] = "--help";
  std::vector<char*> words(argv, argv + argc);
  if (argc < 2 || std::string(argv[1]) != "help") return words;
  words.erase(words.begin() + 1);
  words.push_back(help);
  return words;
}

int usage_error(const CLI::App& app, const CLI::ParseError& failure, int argc, char** argv) {
  if (failure.get_exit_code() == 0) return app.exit(failure);  // --help, --version
  const Named named = named_command(app, argc, argv);
  std::vector<std::string> names;
  for (const CLI::App* command : named.app->get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(command->get_name());
  std::string what = failure.what();
  if (!named.unknown.empty())
    what = fmt::format("unknown command '{}'{}", named.unknown, did_you_mean(named.unknown, names));
  else if (!names.empty() && named.alone)
    what = "no command";
  if (!names.empty()) what += fmt::format("\ncommands: {}", join(names, ", "));
  fmt::print(stderr, "flux: {}\ntry '{} --help'\n", what, named.path);
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
  const char* wish = std::getenv("FLUX_ISA");
  const Status capped = cap_isa(wish != nullptr ? wish : "");
  if (!capped.is_ok()) {
    fmt::print(stderr, "flux: FLUX_ISA: {}\n", capped.message());
    return 2;
  }
  CLI::App app{"flux trains very large sparse models and does not stop.", "flux"};
  app.set_version_flag("--version", std::string("flux ") + kVersion);
  app.require_subcommand(1);
  int exit_code = 0;
  Arguments arguments;
  arguments.run.resume_command = resume_command(argc, argv);
  arguments.coordinator.resume_command = arguments.run.resume_command;
  add_job_commands(&app, &arguments, &exit_code);
  add_role_commands(&app, &arguments, &exit_code);
  add_running_commands(&app, &arguments, &exit_code);
  add_tool_commands(&app, &arguments, &exit_code);
  app.footer(  // after the commands, which would take it for theirs
      "Examples:\n"
      "  flux data gen criteo --examples 100000 --out data/train.tsv\n"
      "  flux run examples/ctr_dnn/job.yaml --set data.train=data/train.tsv\n"
      "  flux run examples/ctr_dnn/job.yaml --servers 2 --workers 3\n"
      "Running a job again goes on where it stopped.");
  std::vector<char*> words = without_help(argc, argv);
  const int count = static_cast<int>(words.size());
  try {
    const Named named = named_command(app, count, words.data());
    if (!named.unknown.empty())  // help of it would be that of the command before it
      throw CLI::ExtrasError(std::vector<std::string>{named.unknown});
    app.parse(count, words.data());
  } catch (const CLI::ParseError& failure) {
    return usage_error(app, failure, count, words.data());
  }
  return exit_code;
}

// What was told may lie in a buffer still; a program that reads it must not take a part for all.
int after_last_words(int exit_code) {
  const int failure = std::fflush(stdout) != 0 ? errno : 0;
  if (std::ferror(stdout) == 0 || exit_code != 0) return exit_code;
  fmt::print(stderr, "flux: standard output cannot be written{}{}\n", failure != 0 ? ": " : "",
             failure != 0 ? std::strerror(failure) : "");
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  std::set_new_handler(out_of_memory);
  std::signal(SIGXFSZ, SIG_IGN);  // a write beyond what files may have fails, and is told
  flux::flush_denormals();
  try {
    return after_last_words(run_main(argc, argv));
  } catch (const std::exception& failure) {  // none is expected: the core throws nothing
    std::fprintf(stderr, "flux: %s\n", failure.what());
    return 1;
  }
}
