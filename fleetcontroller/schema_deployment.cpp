#include "schema_deployment.h"

#include <algorithm>

#include "fjord/document/document_type.h"
#include "fjord/document/garbage_rules.h"
#include "fjord/document/schema_change.h"
#include "fjord/rpc/cluster_snapshot.h"

namespace fjord::fleetcontroller {
namespace {

Result<std::vector<std::string>> merge_schemas(std::vector<std::string> schemas, const rpc::DeploySchemas& request) {
  for (const std::string& text : request.schemas) {
    FJORD_TRY_ASSIGN(const std::string name, schema_name(text));
    auto same = std::find_if(schemas.begin(), schemas.end(), [&](const std::string& old) {
      Result<std::string> old_name = schema_name(old);
      return old_name && *old_name == name;
    });
    if (same == schemas.end()) {
      schemas.push_back(text);
    } else {
      *same = text;
    }
  }
  return schemas;
}

std::vector<std::string> with_builtin(const std::vector<std::string>& schemas) {
  std::vector<std::string> all = rpc::builtin_schemas();
  all.insert(all.end(), schemas.begin(), schemas.end());
  return all;
}

/// Checks that documents stored under the schemas `before` are readable under `types`.
Status check_readable(const std::vector<std::string>& before, const DocumentTypeRepo& types,
                      const std::vector<std::string>& may_drop) {
  auto old = DocumentTypeRepo::build(with_builtin(before));
  if (!old) return old.error().with_context("the schemas so far");
  return check_schema_change(**old, types, {.may_drop = may_drop});
}

}  // namespace

Result<SchemaRecord> deploy_schemas(const SchemaRecord& before, const rpc::DeploySchemas& request,
                                    std::vector<std::string>& warnings) {
  FJORD_TRY_ASSIGN(std::vector<std::string> merged, merge_schemas(before.schemas, request));
  const std::vector<std::string> all = with_builtin(merged);
  std::vector<SchemaWarning> found;
  FJORD_TRY_ASSIGN(const auto types, DocumentTypeRepo::build(all, &found));
  FJORD_TRY(GarbageRules::check(*types));
  FJORD_TRY(check_readable(before.schemas, *types, request.may_drop));
  for (SchemaWarning& warning : found) {
    const auto& deployed = request.schemas;
    const bool is_new = std::find(deployed.begin(), deployed.end(), all[warning.text]) != deployed.end();
    if (is_new) warnings.push_back(std::move(warning.message));
  }
  if (merged == before.schemas) return before;
  return SchemaRecord{before.version + 1, std::move(merged)};
}

}  // namespace fjord::fleetcontroller
