//! Answers as responders make them, and others.

use super::*;
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair};
use rcgen::{
    BasicConstraints, CertificateParams, CustomExtension, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair,
};
use x509_cert::der::asn1::{BitString, GeneralizedTime};
use x509_ocsp::{ResponderId, ResponseBytes, ResponseData, Version};

const NOW: i64 = 1_800_000_000;

/// An authority, a server's certificate, and one that the authority has made for answers.
struct World {
    issuer: Issuer<'static, KeyPair>,
    issuer_pem: String,
    leaf_pem: String,
    other_pem: String,
    delegate: (Vec<u8>, KeyPair),
    /// Of the authority too, but for servers.
    server: (Vec<u8>, KeyPair),
}

/// What an answer says.
#[derive(Clone, Copy)]
struct Said {
    status: CertStatus,
    this_update: i64,
    next_update: Option<i64>,
}

const GOOD: Said = Said {
    status: CertStatus::Good(Null),
    this_update: NOW - 10,
    next_update: Some(NOW + 10_000),
};

impl World {
    fn new() -> Self {
        let mut root = CertificateParams::default();
        root.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        root.distinguished_name.push(DnType::CommonName, "root");
        let key = KeyPair::generate().unwrap();
        let issuer_pem = root.self_signed(&key).unwrap().pem();
        let issuer = Issuer::new(root, key);
        let leaf = |name: &str, usage: Vec<ExtendedKeyUsagePurpose>| {
            let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
            params.extended_key_usages = usage;
            // AuthorityInfoAccess: OCSP at http://r/.
            let access =
                b"\x30\x16\x30\x14\x06\x08\x2b\x06\x01\x05\x05\x07\x30\x01\x86\x08http://r";
            let extension =
                CustomExtension::from_oid_content(&[1, 3, 6, 1, 5, 5, 7, 1, 1], access.to_vec());
            params.custom_extensions = vec![extension];
            let key = KeyPair::generate().unwrap();
            let certificate = params.signed_by(&key, &issuer).unwrap();
            (certificate, key)
        };
        let (first, _) = leaf("a.example", Vec::new());
        let (other, _) = leaf("b.example", Vec::new());
        let (delegate, delegate_key) = leaf("r", vec![ExtendedKeyUsagePurpose::OcspSigning]);
        let (server, server_key) = leaf("s", vec![ExtendedKeyUsagePurpose::ServerAuth]);
        Self {
            issuer_pem,
            leaf_pem: first.pem(),
            other_pem: other.pem(),
            delegate: (delegate.der().to_vec(), delegate_key),
            server: (server.der().to_vec(), server_key),
            issuer,
        }
    }

    fn question(&self, pem: &str) -> OcspQuestion {
        OcspQuestion::new(pem.as_bytes(), [self.issuer_pem.as_bytes()]).unwrap()
    }

    /// An answer that this key has signed, with the certificate of the signer if it is not the issuer.
    fn answer(&self, said: Said, signer: &KeyPair, certificate: Option<&[u8]>) -> Vec<u8> {
        let time = |seconds: i64| {
            let since = Duration::from_secs(seconds.try_into().unwrap());
            OcspGeneralizedTime(GeneralizedTime::from_unix_duration(since).unwrap())
        };
        let data = ResponseData {
            version: Version::V1,
            responder_id: ResponderId::ByKey(OctetString::new([7; 20]).unwrap()),
            produced_at: time(NOW),
            responses: vec![SingleResponse {
                cert_id: self.question(&self.leaf_pem).id,
                cert_status: said.status,
                this_update: time(said.this_update),
                next_update: said.next_update.map(time),
                single_extensions: None,
            }],
            response_extensions: None,
        };
        let pair = EcdsaKeyPair::from_private_key_der(
            &ECDSA_P256_SHA256_ASN1_SIGNING,
            &signer.serialize_der(),
        );
        let signature = pair
            .unwrap()
            .sign(&SystemRandom::new(), &data.to_der().unwrap());
        let basic = BasicOcspResponse {
            tbs_response_data: data,
            signature_algorithm: AlgorithmIdentifierOwned {
                oid: ObjectIdentifier::new_unwrap("1.2.840.10045.4.3.2"),
                parameters: None,
            },
            signature: BitString::from_bytes(signature.unwrap().as_ref()).unwrap(),
            certs: certificate.map(|der| vec![Certificate::from_der(der).unwrap()]),
        };
        let response = OcspResponse {
            response_status: OcspResponseStatus::Successful,
            response_bytes: Some(ResponseBytes {
                response_type: BASIC,
                response: OctetString::new(basic.to_der().unwrap()).unwrap(),
            }),
        };
        response.to_der().unwrap()
    }

    fn judge(&self, said: Said) -> Result<OcspAnswer, OcspFault> {
        let answer = self.answer(said, self.issuer.key(), None);
        self.question(&self.leaf_pem).judge(&answer, NOW)
    }
}

#[test]
fn what_is_asked_names_the_certificate_and_where_to_ask() {
    let world = World::new();
    let question = world.question(&world.leaf_pem);
    assert_eq!(question.responder(), Some("http://r"));
    let request = OcspRequest::from_der(question.request()).unwrap();
    assert_eq!(request.tbs_request.request_list[0].req_cert, question.id);
    let none: [&[u8]; 0] = [];
    let leaf = world.leaf_pem.as_bytes();
    assert_eq!(OcspQuestion::new(leaf, none), Err(NoQuestion::NoIssuer));
    assert_eq!(OcspQuestion::new(b"", none), Err(NoQuestion::Malformed));
    let chain = [world.leaf_pem.as_bytes(), world.issuer_pem.as_bytes()].concat();
    assert!(OcspQuestion::new(&chain, none).is_ok());
}

#[test]
fn an_answer_counts_while_it_is_valid_give_or_take_five_minutes() {
    let world = World::new();
    let good = |next_update| {
        Ok(OcspAnswer {
            status: Status::Good,
            next_update,
        })
    };
    let check = |this_update: i64, next_update: Option<i64>, expected| {
        let said = Said {
            this_update,
            next_update,
            ..GOOD
        };
        assert_eq!(world.judge(said), expected, "{this_update} {next_update:?}");
    };
    check(NOW, Some(NOW + 1), good(Some(NOW + 1)));
    check(NOW - 100_000, None, good(None));
    check(NOW + 300, Some(NOW + 600), good(Some(NOW + 600)));
    check(NOW + 301, Some(NOW + 600), Err(OcspFault::NotNow));
    check(NOW - 900, Some(NOW - 300), good(Some(NOW - 300)));
    check(NOW - 900, Some(NOW - 301), Err(OcspFault::NotNow));
}

#[test]
fn an_answer_says_whether_the_certificate_is_revoked() {
    let world = World::new();
    let time = Duration::from_secs(1000);
    let time = GeneralizedTime::from_unix_duration(time).unwrap();
    let revoked = x509_ocsp::RevokedInfo {
        revocation_time: OcspGeneralizedTime(time),
        revocation_reason: None,
    };
    for (status, expected) in [
        (CertStatus::Revoked(revoked), Status::Revoked),
        (CertStatus::unknown(), Status::Unknown),
    ] {
        let judged = world.judge(Said { status, ..GOOD });
        assert_eq!(judged.map(|answer| answer.status), Ok(expected));
    }
}

#[test]
fn only_the_issuer_signs_or_what_it_has_made_for_that() {
    let world = World::new();
    let question = world.question(&world.leaf_pem);
    let judge = |signer: &KeyPair, certificate: Option<&[u8]>| {
        let answer = world.answer(GOOD, signer, certificate);
        question.judge(&answer, NOW).map(drop)
    };
    assert_eq!(judge(world.issuer.key(), None), Ok(()));
    let (delegate, key) = &world.delegate;
    assert_eq!(judge(key, Some(delegate)), Ok(()));
    assert_eq!(judge(key, None), Err(OcspFault::BadSignature));
    let (server, key) = &world.server;
    assert_eq!(judge(key, Some(server)), Err(OcspFault::BadSignature));
    let stranger = World::new();
    let (delegate, key) = &stranger.delegate;
    assert_eq!(judge(key, Some(delegate)), Err(OcspFault::BadSignature));
}

#[test]
fn an_answer_about_another_certificate_is_none() {
    let world = World::new();
    let answer = world.answer(GOOD, world.issuer.key(), None);
    let judged = world.question(&world.other_pem).judge(&answer, NOW);
    assert_eq!(judged, Err(OcspFault::OtherCertificate));
    let refused = world
        .question(&world.leaf_pem)
        .judge(b"\x30\x03\x0a\x01\x03", NOW);
    assert_eq!(refused, Err(OcspFault::Refused("trylater")));
}

#[test]
fn a_changed_byte_makes_an_answer_worthless() {
    let world = World::new();
    let question = world.question(&world.leaf_pem);
    let answer = world.answer(GOOD, world.issuer.key(), None);
    let good = question.judge(&answer, NOW);
    assert!(good.is_ok());
    for at in 0..answer.len() {
        let mut changed = answer.clone();
        changed[at] ^= 0x11;
        // What is not signed may change, but says nothing else then.
        if let Ok(judged) = question.judge(&changed, NOW) {
            assert_eq!(Ok(judged), good, "{at}");
        }
        assert!(question.judge(&answer[..at], NOW).is_err(), "{at}");
    }
}

#[test]
fn an_issuer_has_to_lead_to_a_trusted_certificate() {
    let (world, stranger) = (World::new(), World::new());
    let question = world.question(&world.leaf_pem);
    let check = |pem: &str| question.check_issuer(pem.as_bytes(), NOW);
    assert_eq!(check(&world.issuer_pem), Ok(()));
    assert_eq!(check(&stranger.issuer_pem), Err(OcspFault::Untrusted));
    assert_eq!(check(""), Err(OcspFault::Untrusted));
}
