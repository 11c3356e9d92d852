#include "flux/nn/operator_cases.h"

#include <cmath>
#include <sstream>

#include <fmt/format.h>

#include "flux/nn/operator_run.h"

namespace flux {
namespace {

struct Want {
  std::string what;  // "output", "loss", "parameters", "input 0", ...
  std::vector<float> values;
};

struct Case {
  std::string name;
  OperatorRun run;
  std::vector<Want> wants;
};

std::vector<float> numbers(std::istringstream& line) {
  std::vector<float> values;
  for (std::string word; line >> word;) values.push_back(std::strtof(word.c_str(), nullptr));
  return values;
}

// Takes a line about keys and their rows; false for a word it does not know.
bool read_keys(const std::string& word, std::istringstream& line, OperatorRun::Keys* keys) {
  if (word == "slots") {
    line >> keys->slots;
  } else if (word == "table") {
    line >> keys->dim;
    keys->rows = numbers(line);
  } else if (word == "counts") {
    keys->begin = {0};
    for (uint32_t count = 0; line >> count;) keys->begin.push_back(keys->begin.back() + count);
  } else if (word == "keys") {
    for (uint32_t row = 0; line >> row;) keys->index.push_back(row);
  } else if (word == "values") {
    keys->values = numbers(line);
  } else if (word == "noise") {
    line >> keys->noise;
  } else {
    return false;
  }
  return true;
}

AttrValue attribute(const std::string& type, const std::string& value) {
  if (type == "int") return static_cast<int64_t>(std::stoll(value));
  if (type == "float") return std::stod(value);
  if (type == "bool") return value == "true";
  if (type == "text") return value;
  std::vector<std::string> parts;
  std::istringstream in(value);
  for (std::string part; std::getline(in, part, ',');) parts.push_back(part);
  return parts;
}

// Takes one line of a case; false for a word it does not know.
bool read_line(const std::string& word, std::istringstream& line, Case* test) {
  OperatorRun& run = test->run;
  if (word == "op") {
    line >> run.op;
  } else if (word == "batch") {
    line >> run.batch;
  } else if (word == "attr") {
    std::string name, type, value;
    line >> name >> type >> value;
    run.attrs[name] = attribute(type, value);
  } else if (word == "input") {
    OperatorRun::Input input;
    line >> input.length >> input.dim;
    input.values = numbers(line);
    run.inputs.push_back(std::move(input));
  } else if (word == "label") {
    run.labels = numbers(line);
  } else if (word == "weight") {
    run.weights = numbers(line);
  } else if (word == "parameters") {
    run.parameters = numbers(line);
  } else if (word == "gradient") {
    run.output_gradient = numbers(line);
  } else if (word == "want") {
    Want want;
    line >> want.what;
    if (std::string index; want.what == "input" && line >> index) want.what += " " + index;
    want.values = numbers(line);
    test->wants.push_back(std::move(want));
  } else {
    return read_keys(word, line, &run.keys);
  }
  return true;
}

std::vector<float> got(const OperatorResult& result, const std::string& what) {
  if (what == "output") return result.output;
  if (what == "loss") return {static_cast<float>(result.loss)};
  if (what == "parameters") return result.parameter_gradient;
  if (what == "table") return result.row_gradient;
  const auto index = static_cast<size_t>(std::stoul(what.substr(what.find(' '))));
  return index < result.gradients.size() ? result.gradients[index] : std::vector<float>{};
}

// Differences are judged against the largest number of the vector: sums cancel.
std::string compare(const Want& want, const std::vector<float>& have) {
  if (have.size() != want.values.size())
    return fmt::format("{}: {} numbers, {} wanted", want.what, have.size(), want.values.size());
  float top = 1e-3F;
  for (const float value : want.values) top = std::max(top, std::fabs(value));
  for (size_t i = 0; i < have.size(); ++i)
    if (!(std::fabs(have[i] - want.values[i]) <= 2e-5F * top))
      return fmt::format("{}[{}] is {}, wanted {}", want.what, i, have[i], want.values[i]);
  return "";
}

void check_case(const Case& test, CaseReport* report) {
  ++report->cases;
  const auto result = run_operator(test.run);
  std::string problem = result.is_ok() ? "" : result.status().message();
  if (problem.empty() && test.wants.empty()) problem = "nothing is wanted";
  for (const Want& want : test.wants) {
    if (!problem.empty()) break;
    problem = compare(want, got(result.value(), want.what));
    report->numbers += want.values.size();
  }
  if (!problem.empty())
    report->failures.push_back(fmt::format("case {} ({}): {}", test.name, test.run.op, problem));
}

}  // namespace

CaseReport check_operator_cases(std::istream& in) {
  CaseReport report;
  Case test;
  for (std::string text; std::getline(in, text);) {
    std::istringstream line(text);
    std::string word;
    if (!(line >> word) || word[0] == '#') continue;
    if (word == "case") {
      test = {};
      line >> test.name;
    } else if (word == "end") {
      check_case(test, &report);
    } else if (!read_line(word, line, &test)) {
      report.failures.push_back(fmt::format("case {}: unknown word '{}'", test.name, word));
    }
  }
  return report;
}

}  // namespace flux
