//! Tests with a webhook in this process, without TLS.

use super::*;
use pintle_admission::PluginFlags;
use pintle_admission::testing::Request;
use pintle_machinery::{Value, json};
use std::{
    io::{Read, Write},
    net::TcpListener,
    thread,
};

/// A webhook that sends these answers, one per connection. Returns its URL and the bodies of the requests.
fn webhook(answers: Vec<(u16, Value)>) -> (String, thread::JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/images", listener.local_addr().unwrap());
    let questions = thread::spawn(move || {
        let mut questions = Vec::new();
        for (status, answer) in answers {
            let (mut stream, _) = listener.accept().unwrap();
            let mut text = String::new();
            let body = loop {
                let mut bytes = [0; 4096];
                let length = stream.read(&mut bytes).unwrap();
                text.push_str(std::str::from_utf8(&bytes[..length]).unwrap());
                let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
                let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
                if body.len() >= length.unwrap().parse().unwrap() {
                    break body.to_owned();
                }
            };
            questions.push(body);
            let answer = answer.to_string();
            let length = answer.len();
            let head =
                format!("HTTP/1.1 {status} X\r\ncontent-type: application/json\r\ncontent-length: {length}");
            write!(stream, "{head}\r\nconnection: close\r\n\r\n{answer}").unwrap();
        }
        questions
    });
    (url, questions)
}

fn plugin(url: &str, default_allow: bool) -> ImagePolicyWebhook {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("config");
    let kubeconfig = format!(
        "current-context: c\nclusters: [{{name: c, cluster: {{server: '{url}'}}}}]\ncontexts: [{{name: c, context: {{cluster: \
         c}}}}]\n"
    );
    std::fs::write(&path, kubeconfig).unwrap();
    let fields = json!({"kubeConfigFile": path, "defaultAllow": default_allow, "retryBackoff": 1});
    let text = json!({"imagePolicy": fields}).to_string();
    let settings = PluginSettings { configuration: Some(text.as_bytes()), flags: &PluginFlags::default() };
    ImagePolicyWebhook::new(&settings).unwrap()
}

/// The refusal of a pod, and the audit annotations.
fn judge(plugin: &ImagePolicyWebhook, image: &str) -> (Result<(), String>, Vec<String>) {
    let mut request = Request::new(Operation::Create, "", "v1", "pods", "n");
    request.object = json!({"metadata": {"name": "p", "annotations": {"a.image-policy.k8s.io/b": "c", "d": "e"}},
        "spec": {"containers": [{"image": image}], "initContainers": [{"name": "i"}]}});
    request.with(async |request| {
        assert!(plugin.handles(request));
        let result = plugin.validate(request).await.map_err(|status| status.message);
        (result, request.audit_annotations.iter().map(|(key, value)| format!("{key}={value}")).collect())
    })
}

#[test]
fn the_webhook_decides_and_its_answers_are_cached() {
    let answers = [
        json!({"status": {"allowed": true, "auditAnnotations": {"a": "b"}}}),
        json!({"status": {"allowed": false, "reason": "old"}}),
        json!({"status": {}}),
    ];
    let (url, questions) = webhook(answers.map(|answer| (200, answer)).to_vec());
    let plugin = plugin(&url, false);
    let forbidden = |why: &str| Err(format!("pods \"p\" is forbidden: {why}"));
    let annotation = vec!["imagepolicywebhook.image-policy.k8s.io/a=b".to_owned()];
    for _ in 0..2 {
        assert_eq!(judge(&plugin, "good"), (Ok(()), annotation.clone()));
        let why = "image policy webhook backend denied one or more images: old";
        assert_eq!(judge(&plugin, "bad").0, forbidden(why));
        assert_eq!(judge(&plugin, "mute").0, forbidden("one or more images rejected by webhook backend"));
    }
    let questions = questions.join().unwrap();
    assert_eq!(questions.len(), 3);
    let question: Value = serde_json::from_str(&questions[0]).unwrap();
    let spec = json!({"containers": [{"image": "good"}, {}], "annotations": {"a.image-policy.k8s.io/b": "c"}, "namespace": "n"});
    assert_eq!(question["spec"], spec);
    assert_eq!(question["apiVersion"], "imagepolicy.k8s.io/v1alpha1");
}

#[test]
fn a_webhook_that_fails_is_called_five_times() {
    for default_allow in [false, true] {
        let (url, questions) = webhook(vec![(500, json!({})); 5]);
        let (result, annotations) = judge(&plugin(&url, default_allow), "x");
        assert_eq!(questions.join().unwrap().len(), 5);
        assert_eq!(result.is_ok(), default_allow);
        let expected: &[&str] =
            if default_allow { &["imagepolicywebhook.image-policy.k8s.io/failed-open=true"] } else { &[] };
        assert_eq!(annotations, expected);
    }
}

#[test]
fn large_answers_are_not_cached() {
    let answer = json!({"status": {"allowed": false, "reason": "x".repeat(MAX_CACHED + 1)}});
    let (url, questions) = webhook(vec![(200, answer); 2]);
    let plugin = plugin(&url, false);
    for _ in 0..2 {
        assert!(judge(&plugin, "x").0.is_err());
    }
    assert_eq!(questions.join().unwrap().len(), 2);
    assert!(plugin.answers.lock().get("", Instant::now()).is_none());
}
