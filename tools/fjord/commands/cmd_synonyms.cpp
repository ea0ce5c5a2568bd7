#include <fmt/format.h>

#include "commands/commands.h"
#include "fjord/library/admin.h"
#include "fjord/library/detail/input_file.h"
#include "fjord/library/detail/own_documents.h"
#include "fjord/search/broker_documents.h"
#include "fjord/search/synonyms.h"
#include "output/json_text.h"

namespace fjord::cli {
namespace {

constexpr const char* kSetting = "search.synonyms";

Result<std::uint64_t> list_in_force(Client& client) {
  FJORD_TRY_ASSIGN(const Configuration configuration, client.admin().configuration());
  const SettingInfo* setting = configuration.find(kSetting);
  if (setting == nullptr) return Status(StatusCode::NotImplemented, "the cluster has no lists of synonyms yet");
  return std::stoull(setting->live_value.empty() ? setting->default_value : setting->live_value);
}

Result<std::string> stored_list(Client& client, std::uint64_t number) {
  const ReadResult read = client.get(search::synonyms_id(number));
  if (read.status.code() == StatusCode::NotFound) {
    return Status(StatusCode::NotFound, fmt::format("there is no list {} of synonyms", number));
  }
  FJORD_TRY(read.status);
  return std::string(read->text("terms").value_or(""));
}

Result<std::uint64_t> free_number(Client& client) {
  for (std::uint64_t number = 1;; ++number) {
    const ReadResult read = client.get(search::synonyms_id(number), {.fields = "[id]"});
    if (read.status.code() == StatusCode::NotFound) return number;
    FJORD_TRY(read.status);
  }
}

/// Errors: TestAndSetFailed if the number is taken.
Status store_list(Client& client, std::uint64_t number, const std::string& text) {
  FJORD_TRY_ASSIGN(const auto types, client.types());
  FJORD_TRY_ASSIGN(const Document document, search::synonyms_document(*types, number, text));
  const WriteResult written = put_own(client, document, {.required_version = Timestamp{0}, .create = true});
  if (written.status.code() == StatusCode::TestAndSetFailed) {
    return {StatusCode::TestAndSetFailed, fmt::format("there is a list {} of synonyms already", number)};
  }
  return written.status;
}

int print_deployed(const SynonymArgs& args, std::uint64_t number, std::uint64_t before, std::size_t terms) {
  if (args.common.json()) {
    JsonText json;
    json.begin_object().key("done").boolean(args.yes).key("list").number(number).key("before").number(before);
    print_line(json.key("terms").number(terms).end_object().str());
    return kOk;
  }
  print_line(fmt::format("list {} of synonyms: {} terms", number, terms));
  print_line(fmt::format("{}: {} -> {}", kSetting, before, number));
  if (args.yes) print_line(fmt::format("back: fjord config set {}={}", kSetting, before));
  return kOk;
}

}  // namespace

int run_synonyms_deploy(const SynonymArgs& args) {
  const auto file = InputFile::open(args.file);
  if (!file) return report(file.error());
  const auto text = (*file)->read_all(search::kSynonymsBytesMax + 1);
  if (!text) return report(text.error());
  const auto list = search::Synonyms::parse(*text);
  if (!list) return report(list.error().with_context(args.file));
  Client client = client_of(args.common);
  if (const Status status = ready(client, args.common); !status) return report(status);
  const auto before = list_in_force(client);
  if (!before) return report(before.error());
  const auto number = args.number != 0 ? Result<std::uint64_t>(args.number) : free_number(client);
  if (!number) return report(number.error());
  if (!args.yes) {
    complain("nothing is changed without --yes");
    return print_deployed(args, *number, *before, list->terms());
  }
  if (const Status stored = store_list(client, *number, *text); !stored) {
    complain(stored.message());
    return stored.code() == StatusCode::TestAndSetFailed ? kRefused : failure_code(stored);
  }
  const auto changed = client.admin().set({{kSetting, std::to_string(*number)}}, {.reason = args.file});
  if (!changed) return report(changed.error());
  return print_deployed(args, *number, *before, list->terms());
}

int run_synonyms_show(const SynonymArgs& args) {
  Client client = client_of(args.common);
  if (const Status status = ready(client, args.common); !status) return report(status);
  const auto in_force = list_in_force(client);
  if (!in_force) return report(in_force.error());
  const std::uint64_t number = args.number != 0 ? args.number : *in_force;
  Result<std::string> text = std::string();
  if (number != 0) text = stored_list(client, number);
  if (!text) return report(text.error());
  if (args.common.json()) {
    JsonText json;
    json.begin_object().key("list").number(number).key("in_force").boolean(number == *in_force);
    print_line(json.key("terms").text(*text).end_object().str());
    return kOk;
  }
  if (number == 0) {
    complain("no list of synonyms is in force");
  } else {
    print(*text);
  }
  return kOk;
}

}  // namespace fjord::cli
