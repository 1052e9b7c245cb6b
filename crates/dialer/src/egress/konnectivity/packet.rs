//! The messages of konnectivity's `ProxyService`
//! (<https://github.com/kubernetes-sigs/apiserver-network-proxy/blob/master/konnectivity-client/proto/client/client.proto>),
//! declared by hand so that the build needs no protobuf compiler.

use bytes::Bytes;
use prost::{Enumeration, Message, Oneof};

#[derive(Clone, PartialEq, Message)]
pub(in crate::egress) struct Packet {
    #[prost(enumeration = "PacketType", tag = "1")]
    pub(in crate::egress) packet_type: i32,
    #[prost(oneof = "Payload", tags = "2, 3, 4, 5, 6, 7")]
    pub(in crate::egress) payload: Option<Payload>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Enumeration)]
#[repr(i32)]
pub(in crate::egress) enum PacketType {
    DialReq = 0,
    DialRsp = 1,
    CloseReq = 2,
    CloseRsp = 3,
    Data = 4,
    DialCls = 5,
}

#[derive(Clone, PartialEq, Oneof)]
pub(in crate::egress) enum Payload {
    #[prost(message, tag = "2")]
    DialRequest(DialRequest),
    #[prost(message, tag = "3")]
    DialResponse(DialResponse),
    #[prost(message, tag = "4")]
    Data(Data),
    #[prost(message, tag = "5")]
    CloseRequest(CloseRequest),
    #[prost(message, tag = "6")]
    CloseResponse(CloseResponse),
    #[prost(message, tag = "7")]
    CloseDial(CloseDial),
}

#[derive(Clone, PartialEq, Message)]
pub(in crate::egress) struct DialRequest {
    #[prost(string, tag = "1")]
    pub(in crate::egress) protocol: String,
    #[prost(string, tag = "2")]
    pub(in crate::egress) address: String,
    #[prost(int64, tag = "3")]
    pub(in crate::egress) random: i64,
}

#[derive(Clone, PartialEq, Message)]
pub(in crate::egress) struct DialResponse {
    #[prost(string, tag = "1")]
    pub(in crate::egress) error: String,
    #[prost(int64, tag = "2")]
    pub(in crate::egress) connect_id: i64,
    #[prost(int64, tag = "3")]
    pub(in crate::egress) random: i64,
}

#[derive(Clone, PartialEq, Message)]
pub(in crate::egress) struct Data {
    #[prost(int64, tag = "1")]
    pub(in crate::egress) connect_id: i64,
    #[prost(string, tag = "2")]
    pub(in crate::egress) error: String,
    #[prost(bytes = "bytes", tag = "3")]
    pub(in crate::egress) data: Bytes,
}

#[derive(Clone, PartialEq, Message)]
pub(in crate::egress) struct CloseRequest {
    #[prost(int64, tag = "1")]
    pub(in crate::egress) connect_id: i64,
}

#[derive(Clone, PartialEq, Message)]
pub(in crate::egress) struct CloseResponse {
    #[prost(string, tag = "1")]
    pub(in crate::egress) error: String,
    #[prost(int64, tag = "2")]
    pub(in crate::egress) connect_id: i64,
}

#[derive(Clone, PartialEq, Message)]
pub(in crate::egress) struct CloseDial {
    #[prost(int64, tag = "1")]
    pub(in crate::egress) random: i64,
}

impl Packet {
    /// The packet of a payload.
    pub(in crate::egress) fn of(payload: Payload) -> Packet {
        let packet_type = match payload {
            Payload::DialRequest(_) => PacketType::DialReq,
            Payload::DialResponse(_) => PacketType::DialRsp,
            Payload::Data(_) => PacketType::Data,
            Payload::CloseRequest(_) => PacketType::CloseReq,
            Payload::CloseResponse(_) => PacketType::CloseRsp,
            Payload::CloseDial(_) => PacketType::DialCls,
        };
        Packet { packet_type: packet_type.into(), payload: Some(payload) }
    }
}
