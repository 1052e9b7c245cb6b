//! The bytes of a watch event: the object, its metadata alone, or a table with its row.

use crate::{
    base::{encoding::encode, negotiation::Transform},
    endpoints::encoder::{Encoder, INITIAL_EVENTS_END, partial, partial_schema},
};
use bytes::{Bytes, BytesMut};
use pintle_cacher::{CachedObject, EventType, RepresentationId, WatchEvent, WatchItem};
use pintle_machinery::{Status, ValueExt, json};
use pintle_storage::Revision;
use std::sync::Arc;

/// The bytes of an item. Those of an event are made once for all watches with the same form. A table has columns in the
/// first event of a watch only: `columns_sent` tells later ones.
pub(super) fn encoded(
    encoder: &Encoder<'_>,
    item: &WatchItem,
    columns_sent: &mut bool,
) -> Result<Bytes, Status> {
    match item {
        WatchItem::Event { event_type, event } => match &encoder.accepted.transform {
            None => event.frame(*event_type, encoder.representation(encoder.accepted.media_type), || {
                plain_frame(encoder, *event_type, event)
            }),
            Some((Transform::PartialObjectMetadata, _)) => {
                let make = || {
                    let object = event_object(event, *event_type)?;
                    let tree = encoder.partial_tree(object)?;
                    let bytes = encode(&tree, partial_schema(), &encoder.accepted)?;
                    Ok(encoder.event(event_type.as_str(), bytes))
                };
                match encoder.partial_representation() {
                    Some(id) => event.frame(*event_type, id, make),
                    None => make(),
                }
            }
            Some((Transform::Table, version)) => {
                let with_columns = !std::mem::replace(columns_sent, true);
                match encoder.row_representation().filter(|_| !with_columns) {
                    Some(id) => shared_row(encoder, version, *event_type, event, id),
                    None => table_frame(encoder, version, with_columns, *event_type, event),
                }
            }
        },
        WatchItem::Bookmark { revision, initial_events_end } => {
            let bytes = bookmark(encoder, *revision, *initial_events_end, columns_sent)?;
            Ok(encoder.event("BOOKMARK", bytes))
        }
    }
}

fn event_object(event: &WatchEvent, event_type: EventType) -> Result<&Arc<CachedObject>, Status> {
    event.object(event_type).ok_or_else(|| Status::internal_error("a watch event without its object"))
}

fn plain_frame(encoder: &Encoder<'_>, event_type: EventType, event: &WatchEvent) -> Result<Bytes, Status> {
    let object = event_object(event, event_type)?;
    Ok(encoder.event(event_type.as_str(), encoder.object(object)?))
}

/// The event with a table of one row.
fn table_frame(
    encoder: &Encoder<'_>,
    version: &str,
    with_columns: bool,
    event_type: EventType,
    event: &WatchEvent,
) -> Result<Bytes, Status> {
    let object = event_object(event, event_type)?;
    let metadata = json!({"resourceVersion": object.revision().to_string()});
    let table = encoder.table(version).of_one(with_columns, &metadata, &encoder.row_tree(object)?);
    Ok(encoder.event(event_type.as_str(), table))
}

/// The event with a row that watches share within a second: its ages, in seconds at best, are relative to the time of
/// encoding, which the shared bytes begin with.
fn shared_row(
    encoder: &Encoder<'_>,
    version: &str,
    event_type: EventType,
    event: &WatchEvent,
    id: RepresentationId,
) -> Result<Bytes, Status> {
    let second = encoder.now.as_second().to_be_bytes();
    let shared = event.frame(event_type, id, || {
        let frame = table_frame(encoder, version, false, event_type, event)?;
        let mut stamped = BytesMut::with_capacity(second.len() + frame.len());
        stamped.extend_from_slice(&second);
        stamped.extend_from_slice(&frame);
        Ok::<_, Status>(stamped.freeze())
    })?;
    match shared.starts_with(&second) {
        true => Ok(shared.slice(second.len()..)),
        false => table_frame(encoder, version, false, event_type, event),
    }
}

/// The object of a bookmark: an empty object of the kind with a resourceVersion.
fn bookmark(
    encoder: &Encoder<'_>,
    revision: Revision,
    initial_events_end: bool,
    columns_sent: &mut bool,
) -> Result<Bytes, Status> {
    let resource = &encoder.resource.resource;
    let mut object = resource.empty_object();
    object.set("metadata.resourceVersion", revision.to_string());
    if initial_events_end {
        object.object_at_mut("metadata.annotations").insert(INITIAL_EVENTS_END.to_owned(), "true".into());
    }
    match &encoder.accepted.transform {
        Some((Transform::Table, version)) => {
            let with_columns = !std::mem::replace(columns_sent, true);
            let metadata = json!({"resourceVersion": revision.to_string()});
            Ok(encoder.table(version).of_one(with_columns, &metadata, &object))
        }
        Some((Transform::PartialObjectMetadata, version)) => {
            encode(&partial(resource, &object, version), partial_schema(), &encoder.accepted)
        }
        None => encode(&object, encoder.resource.schema.get(), &encoder.accepted),
    }
}
