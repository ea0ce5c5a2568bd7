#include "arrow/arrow_memory.h"

#include <cstring>
#include <memory>
#include <utility>

#include "fjord/common/coding.h"

namespace fjord {
namespace {

struct OwnedSchema {
  std::string format;
  std::string name;
  std::string metadata;
  std::vector<ArrowSchema> children;
  std::vector<ArrowSchema*> pointers;
};

struct OwnedArray {
  ArrayMemory memory;
  std::vector<const void*> buffers;
  std::vector<ArrowArray*> pointers;
};

void release_schema(ArrowSchema* schema) {
  std::unique_ptr<OwnedSchema> owned(static_cast<OwnedSchema*>(schema->private_data));
  for (ArrowSchema& child : owned->children) {
    if (child.release != nullptr) child.release(&child);
  }
  schema->release = nullptr;
}

void release_array(ArrowArray* array) {
  std::unique_ptr<OwnedArray> owned(static_cast<OwnedArray*>(array->private_data));
  for (ArrowArray& child : owned->memory.children) {
    if (child.release != nullptr) child.release(&child);  // A consumer may have taken a child out.
  }
  array->release = nullptr;
}

/// Returns the metadata in the form of the C data interface.
std::string metadata_bytes(const std::map<std::string, std::string>& metadata) {
  if (metadata.empty()) return {};
  std::string bytes;
  put_fixed(bytes, static_cast<std::int32_t>(metadata.size()));
  for (const auto& [key, value] : metadata) {
    for (const std::string* text : {&key, &value}) {
      put_fixed(bytes, static_cast<std::int32_t>(text->size()));
      bytes += *text;
    }
  }
  return bytes;
}

std::string take_text(const char*& at) {
  const auto size = load_fixed<std::int32_t>(at);
  std::string text(at + sizeof(size), static_cast<std::size_t>(size));
  at += sizeof(size) + text.size();
  return text;
}

}  // namespace

void export_schema(const SchemaNode& node, ArrowSchema* out) {
  auto owned = std::make_unique<OwnedSchema>();
  owned->format = node.format;
  owned->name = node.name;
  owned->metadata = metadata_bytes(node.metadata);
  owned->children.resize(node.children.size());
  for (std::size_t i = 0; i < node.children.size(); ++i) {
    export_schema(node.children[i], &owned->children[i]);
    owned->pointers.push_back(&owned->children[i]);
  }
  *out = {};
  out->format = owned->format.c_str();
  out->name = owned->name.c_str();
  out->metadata = owned->metadata.empty() ? nullptr : owned->metadata.data();
  out->flags = node.nullable ? ARROW_FLAG_NULLABLE : 0;
  out->n_children = static_cast<std::int64_t>(owned->pointers.size());
  out->children = owned->pointers.empty() ? nullptr : owned->pointers.data();
  out->release = release_schema;
  out->private_data = owned.release();
}

void export_array(ArrayMemory memory, std::int64_t length, std::int64_t null_count, ArrowArray* out) {
  auto owned = std::make_unique<OwnedArray>();
  owned->memory = std::move(memory);
  for (std::size_t i = 0; i < owned->memory.buffers.size(); ++i) {
    const std::string& buffer = owned->memory.buffers[i];
    const bool is_absent = i == 0 && owned->memory.has_bitmap && buffer.empty();
    owned->buffers.push_back(is_absent ? nullptr : buffer.data());
  }
  for (ArrowArray& child : owned->memory.children) owned->pointers.push_back(&child);
  *out = {};
  out->length = length;
  out->null_count = null_count;
  out->n_buffers = static_cast<std::int64_t>(owned->buffers.size());
  out->buffers = owned->buffers.data();
  out->n_children = static_cast<std::int64_t>(owned->pointers.size());
  out->children = owned->pointers.empty() ? nullptr : owned->pointers.data();
  out->release = release_array;
  out->private_data = owned.release();
}

std::map<std::string, std::string> metadata_of(const ArrowSchema& schema) {
  std::map<std::string, std::string> metadata;
  if (schema.metadata == nullptr) return metadata;
  const char* at = schema.metadata;
  const auto pairs = load_fixed<std::int32_t>(at);
  at += sizeof(pairs);
  for (std::int32_t i = 0; i < pairs; ++i) {
    std::string key = take_text(at);
    metadata.insert_or_assign(std::move(key), take_text(at));
  }
  return metadata;
}

}  // namespace fjord
