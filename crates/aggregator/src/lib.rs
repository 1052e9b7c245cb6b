//! The aggregator: API services and the front of the server chain.
